package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
	"time"
)

// mostChains is how many chains are remembered: those of the hosts that one controller serves, and some more.
const mostChains = 1 << 15

// Chains remembers which certificates a trust has found in order, so that a host's is verified once and not with each
// handshake and call: signatures are most of what a connection costs. Times are looked at each time, and revocations by
// who asks. It belongs to one trust: another one, such as that with another root, begins with none.
type Chains struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]validity
}

// validity is when all authorities of a chain counted.
type validity struct{ from, until time.Time }

// NewChains remembers none yet.
func NewChains() *Chains { return &Chains{seen: map[[sha256.Size]byte]validity{}} }

// chainKey is what a verification was of: the certificates as they were shown, and what for.
func chainKey(c *x509.Certificate, more []*x509.Certificate, use x509.ExtKeyUsage) (key [sha256.Size]byte) {
	h := sha256.New()
	// Never fails (hash.Hash). Certificates tell their own lengths.
	_, _ = h.Write([]byte{byte(use)})
	_, _ = h.Write(c.Raw)
	for _, m := range more {
		_, _ = h.Write(m.Raw)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// good reports whether the chain was found in order, and its authorities count at both times.
func (s *Chains) good(key [sha256.Size]byte, at, now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.seen[key]
	return ok && !at.Before(v.from) && !at.After(v.until) && !now.After(v.until)
}

// add remembers a chain that was found in order, the certificate itself first.
func (s *Chains) add(key [sha256.Size]byte, chain []*x509.Certificate) {
	if s == nil {
		return
	}
	v := validity{chain[0].NotBefore, chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(v.from) {
			v.from = c.NotBefore
		}
		if c.NotAfter.Before(v.until) {
			v.until = c.NotAfter
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= mostChains {
		clear(s.seen)
	}
	s.seen[key] = v
}
