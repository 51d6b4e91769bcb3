package rpc

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
)

// clockCase is a cluster in which one clock is off.
type clockCase struct {
	t   *testing.T
	a   *pki.Authority
	now time.Time // the right one
	off time.Duration
}

// refuses checks that a refusal by a wrong clock says what the time is by it, and that there is none when it is right.
func (c clockCase) refuses(what string, check func(now time.Time) error) {
	c.t.Helper()
	if err := check(c.now); err != nil {
		c.t.Errorf("%s, by the right clock: %v", what, err)
	}
	wrong := c.now.Add(c.off)
	if err := check(wrong); err != nil && !strings.Contains(err.Error(), wrong.UTC().Format("2006-01-02 15:04 UTC")) {
		c.t.Errorf("%s: the refusal does not name the clock: %v", what, err)
	}
}

// issued is a certificate that was made at a time, with the request that it was made of.
func (c clockCase) issued(kind identity.Kind, at time.Time) (*x509.Certificate, []byte) {
	c.t.Helper()
	csr := must(must(identity.NewKey())(c.t).Request())(c.t)
	make := c.a.IssueHost
	if kind == identity.Controller {
		make = c.a.IssueController
	}
	return must(make(csr, pki.Subject{ID: "x"}, at))(c.t).Certificate, csr
}

// host holds a host's certificate against controllers' clocks, and one that was made by a wrong one.
func (c clockCase) host() {
	cert, _ := c.issued(identity.Host, c.now)
	trust := c.a.Trust()
	client := func(cert *x509.Certificate, now time.Time) (*identity.Peer, error) {
		return trust.Client([]*x509.Certificate{cert}, now, pki.Grace)
	}
	c.refuses("a host's certificate", func(now time.Time) error {
		_, err := client(cert, now)
		return err
	})
	wrong := c.now.Add(c.off)
	by, _ := c.issued(identity.Controller, wrong)
	if c.believes(by, c.now) != nil {
		return // the host neither joins nor renews there
	}
	for what, others := range map[string]health.Clocks{"alone": {}, "with a host": {Hosts: []time.Duration{-c.off}},
		"with a controller": {Controllers: []time.Duration{-c.off}}} {
		if _, contradicted := others.Against(); contradicted {
			continue // it makes none
		}
		made, csr := c.issued(identity.Host, wrong)
		p, err := client(made, c.now)
		if err != nil {
			c.t.Errorf("%s, a certificate that a wrong clock made: %v", what, err)
			continue
		}
		if _, err = c.a.Renew(p, csr, pki.Subject{ID: "x"}, c.now); err != nil {
			c.t.Errorf("%s, it is not renewed: %v", what, err)
		}
	}
}

// believes holds a controller's certificate against a host's clock. The host's own was made by the same controller.
func (c clockCase) believes(cert *x509.Certificate, now time.Time) error {
	trust := c.a.Trust()
	_, err := trust.Controller([]*x509.Certificate{cert}, identity.NewClock(func() time.Time { return now }, cert))
	return err
}

// Each decision that compares a time, with a clock that is off: whoever is refused is told what that clock shows, and
// is let in again when it is right.
func TestS121_NobodyIsLockedOutForGood(t *testing.T) {
	for name, off := range map[string]time.Duration{"5 minutes": 5 * time.Minute, "a day": day, "90 days": 90 * day,
		"2 years": 730 * day} {
		for sign, off := range map[string]time.Duration{" ahead": off, " behind": -off} {
			t.Run(name+sign, func(t *testing.T) {
				c := clockCase{t, newAuthority(t), time.Now(), off}
				c.host()
				cert, _ := c.issued(identity.Controller, c.now)
				c.refuses("a controller's certificate", func(now time.Time) error { return c.believes(cert, now) })
				c.refuses("a controller's certificate at another one", func(now time.Time) error {
					trust := c.a.Trust()
					_, err := trust.Client([]*x509.Certificate{cert}, now, 0)
					return err
				})
				join, joins, err := c.a.NewJoinToken(pki.JoinTerms{Life: time.Hour, By: "root"}, c.now)
				must(join, err)(t)
				c.refuses("a join token", func(now time.Time) error {
					_, err := c.a.Redeem(joins, pki.JoinRequest{Token: join}, "x", now)
					return err
				})
				token, record, err := pki.NewAPIToken(pki.APITerms{Name: "ann", Role: roles.Admin, Life: 30 * day,
					By: "root"}, c.now)
				must(token, err)(t)
				c.refuses("an API token", func(now time.Time) error { return record.Check(token, now) })
				session, signed := pki.NewSignIn("ann", "idp", nil, time.Hour, c.now)
				c.refuses("a session", func(now time.Time) error { return signed.Check(session, now) })
			})
		}
	}
}
