package pki

import (
	"sync/atomic"
	"time"

	"heddle/internal/identity"
)

// Current is the authority that counts now: while a controller runs, a rotation puts another one in its place.
type Current struct{ p atomic.Pointer[Authority] }

// NewCurrent begins with an authority.
func NewCurrent(a *Authority) *Current {
	c := &Current{}
	c.p.Store(a)
	return c
}

// Get is the authority that counts now. Whoever needs several things of it asks once.
func (c *Current) Get() *Authority { return c.p.Load() }

// Set puts another one in its place.
func (c *Current) Set(a *Authority) { c.p.Store(a) }

// Trust is what hosts, controllers and people trust now.
func (c *Current) Trust() identity.Trust { return c.Get().Trust() }

// Fingerprint is that of the root that issues now.
func (c *Current) Fingerprint() identity.Fingerprint { return c.Get().Fingerprint() }

// IssueHost is Authority.IssueHost.
func (c *Current) IssueHost(request []byte, s Subject, now time.Time) (*Issued, error) {
	return c.Get().IssueHost(request, s, now)
}

// IssueController is Authority.IssueController.
func (c *Current) IssueController(request []byte, s Subject, now time.Time) (*Issued, error) {
	return c.Get().IssueController(request, s, now)
}

// Renew is Authority.Renew.
func (c *Current) Renew(p *identity.Peer, request []byte, s Subject, now time.Time) (*Issued, error) {
	return c.Get().Renew(p, request, s, now)
}

// Redeem is Authority.Redeem.
func (c *Current) Redeem(r *JoinRecord, q JoinRequest, host string, now time.Time) (*JoinRecord, error) {
	return c.Get().Redeem(r, q, host, now)
}

// NewJoinToken is Authority.NewJoinToken.
func (c *Current) NewJoinToken(terms JoinTerms, now time.Time) (identity.JoinToken, *JoinRecord, error) {
	return c.Get().NewJoinToken(terms, now)
}

// NewControllerToken is Authority.NewControllerToken.
func (c *Current) NewControllerToken(terms JoinTerms, now time.Time) (identity.JoinToken, *JoinRecord, error) {
	return c.Get().NewControllerToken(terms, now)
}

// ExpiringRoots is Authority.ExpiringRoots.
func (c *Current) ExpiringRoots() []Expiring { return c.Get().ExpiringRoots() }
