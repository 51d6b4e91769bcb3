package pki

import (
	"slices"
	"time"

	"heddle/internal/identity"
)

// Holding says which certificates of a host count. It is part of the host's own record, so that what a host does has no
// effect on what can be said of others.
type Holding struct {
	// Version is that of the host's record.
	Version int64
	// Serials are those that count.
	Serials []string
	// Since is when the newest one was made that was withdrawn, zero for none. What was made until then counts if it is
	// one of Serials; a later one that is not may be so new that this controller has not heard of it.
	Since time.Time
	// Why says why those from before were withdrawn.
	Why Revocation
}

// check returns an error if the certificate of a host was withdrawn.
func (h Holding) check(p *identity.Peer) error {
	if h.Since.IsZero() || slices.Contains(h.Serials, p.Serial) ||
		p.Certificate != nil && identity.MadeAt(p.Certificate).After(h.Since) {
		return nil
	}
	return h.Why.refuses(p)
}

// narrowed reports whether a certificate that counted may count no more by what comes next.
func (h Holding) narrowed(next Holding) bool {
	return !h.Since.Equal(next.Since) ||
		slices.ContainsFunc(h.Serials, func(s string) bool { return !slices.Contains(next.Serials, s) })
}
