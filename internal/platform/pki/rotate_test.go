package pki

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"heddle/internal/identity"
)

// Hosts and controllers of every age understand each other at each step, and each step may be made again.
func TestRotation_NobodyIsCutOff(t *testing.T) {
	c := newCluster(t, start())
	oldTrust := c.Trust()
	oldHost, oldCtl := c.host("h1", start()), c.controller("c1", start())
	token, record, err := c.NewJoinToken(JoinTerms{Life: day}, start())
	c.must(err)

	step := func(name string, make func(d *Document) (*Document, error)) {
		t.Helper()
		d, err := make(c.Document)
		c.must(err)
		c.take(d)
		again, err := make(c.Document)
		if err != nil || again != c.Document {
			t.Fatalf("%s again: %v", name, err)
		}
	}
	meets := func(what string, ctl party, host party, trust identity.Trust, want bool) {
		t.Helper()
		m := connect(t, c.server(ctl, start()).TLS(), clientOf(trust, host, clockAt(start(), time.Time{})).TLS())
		if m.ok() != want {
			t.Errorf("%s: %v %v", what, m.server, m.client)
		}
	}
	step("announce", func(d *Document) (*Document, error) { return d.Announce(c.secret, start().Add(day)) })
	if len(c.Trust().Roots) != 2 || c.Fingerprint() != identity.FingerprintOf(oldTrust.Roots[0]) {
		t.Fatal("the new root issues before it is known")
	}
	meets("announced: old host", oldCtl, oldHost, oldTrust, true)
	meets("announced: old host that knows both", oldCtl, oldHost, c.Trust(), true)

	step("switch", func(d *Document) (*Document, error) { return d.Switch(start()) })
	if c.Document.Other.Key != nil {
		t.Error("the old root's key is still there")
	}
	if _, err := c.Document.Cancel(start()); err == nil {
		t.Error("cancelled after the switch")
	}
	newHost, newCtl := c.host("h2", start()), c.controller("c2", start())
	if c.Fingerprint() == identity.FingerprintOf(oldTrust.Roots[0]) {
		t.Fatal("the old root issues still")
	}
	meets("switched: old host, new controller", newCtl, oldHost, c.Trust(), true)
	meets("switched: a host that was away, new controller", newCtl, oldHost, oldTrust, true)
	meets("switched: new host, old controller", oldCtl, newHost, c.Trust(), true)
	srv := c.server(newCtl, start())
	if c.link.NotAfter.After(oldTrust.Roots[0].NotAfter) {
		t.Error("the old root's signature outlives it")
	}
	fresh, _, err := c.NewJoinToken(JoinTerms{Life: day}, start())
	c.must(err)
	own, err := srv.Own()
	c.must(err)
	_, trust, err := identity.Joined(fresh, parsed(t, own.Certificate.Certificate), clockAt(start(), time.Time{}))
	if err != nil || len(trust.Roots) != 1 || !trust.Roots[0].Equal(c.trust.Roots[0]) {
		t.Error("a host that joins does not trust the new root itself:", err)
	}
	if m := connect(t, srv.TLS(), identity.JoinTLS(token, clockAt(start(), time.Time{}))); !m.ok() {
		t.Error("a token from before the rotation:", m.client)
	}
	if _, err := c.Redeem(record, JoinRequest{Token: token}, "h3", start()); err != nil {
		t.Error(err)
	}

	step("finish", func(d *Document) (*Document, error) { return d.Finish(start()) })
	meets("finished: new and new", newCtl, newHost, c.Trust(), true)
	meets("finished: old host", newCtl, oldHost, c.Trust(), false)
	meets("finished: old controller", oldCtl, newHost, c.Trust(), false)
	meets("finished: a host that was away", newCtl, oldHost, oldTrust, false)
	if _, err := c.Redeem(record, JoinRequest{Token: token}, "h3", start()); !errors.Is(err,
		&identity.TokenError{Fault: identity.WrongCluster}) {
		t.Error(err)
	}
}

// The secret file is lost in all places: who is connected gets over to a new root.
func TestRotation_AfterTheSecretWasLost(t *testing.T) {
	c := newCluster(t, start())
	oldTrust, host, ctl := c.Trust(), c.host("h1", start()), c.controller("c1", start())
	secret := NewSecret()
	d, err := c.Document.AnnounceAfterLoss(secret, start())
	c.must(err)
	if again, err := d.AnnounceAfterLoss(NewSecret(), start()); err != nil || again != d {
		t.Error("a second root:", err)
	}
	a, err := d.View()
	c.must(err)
	if _, err := d.Open(secret); !errors.Is(err, ErrSecret) {
		t.Error(err)
	}
	_, r := c.request()
	if _, err := a.IssueHost(r, Subject{ID: "h2"}, start()); err == nil {
		t.Error("issued without a key")
	}
	c.Authority = a
	m := connect(t, c.server(ctl, start()).TLS(), c.client(host, start()).TLS())
	if !m.ok() || len(a.Trust().Roots) != 2 {
		t.Error(m.server, m.client)
	}
	both := a.Trust()
	c.secret = secret
	d, err = d.Switch(start())
	c.must(err)
	c.take(d)
	for what, trust := range map[string]identity.Trust{"connected": both, "away": oldTrust} {
		srv := c.server(c.controller("c1", start()), start())
		m := connect(t, srv.TLS(), clientOf(trust, host, clockAt(start(), time.Time{})).TLS())
		if m.ok() != (what == "connected") {
			t.Errorf("%s: %v %v", what, m.server, m.client)
		}
	}
	d, err = d.Finish(start())
	c.must(err)
	c.take(d)
}

func parsed(t *testing.T, ders [][]byte) (out []*x509.Certificate) {
	t.Helper()
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestRotation_StepsOutOfOrder(t *testing.T) {
	c := newCluster(t, start())
	if _, err := c.Document.Switch(start()); err == nil {
		t.Error("switched with nothing announced")
	}
	if d, err := c.Document.Finish(start()); err != nil || d != c.Document {
		t.Error("finish changes what is steady:", err)
	}
	d, err := c.Document.Announce(c.secret, start())
	c.must(err)
	if _, err := d.Finish(start()); err == nil {
		t.Error("finished before the switch")
	}
	if back, err := d.Cancel(start()); err != nil || back.Stage != Steady || back.Other != nil || back.Link != nil {
		t.Errorf("%+v %v", back, err)
	}
}

func TestRotation_Waiting(t *testing.T) {
	c := newCluster(t, start())
	old := c.Fingerprint()
	name := identity.Name{Cluster: c.Document.Cluster, Kind: identity.Host, ID: "h1"}
	if w, err := c.Document.Waiting([]Holder{{Name: name}}); err != nil || len(w) != 0 {
		t.Error(w, err)
	}
	d, err := c.Document.Announce(c.secret, start())
	c.must(err)
	roots, err := d.roots()
	c.must(err)
	next := identity.FingerprintOf(roots[1])
	for _, row := range []struct {
		what string
		at   func() (*Document, error)
		h    Holder
		late bool
	}{
		{"does not know the next root", func() (*Document, error) { return d, nil },
			Holder{name, old, []identity.Fingerprint{old}}, true},
		{"knows it", func() (*Document, error) { return d, nil },
			Holder{name, old, []identity.Fingerprint{old, next}}, false},
		{"has a certificate of the old one", func() (*Document, error) { return d.Switch(start()) },
			Holder{name, old, []identity.Fingerprint{old, next}}, true},
		{"has a new one", func() (*Document, error) { return d.Switch(start()) },
			Holder{name, next, []identity.Fingerprint{old, next}}, false},
	} {
		t.Run(row.what, func(t *testing.T) {
			at, err := row.at()
			c.must(err)
			if w, err := at.Waiting([]Holder{row.h}); err != nil || (len(w) == 1) != row.late {
				t.Error(w, err)
			}
		})
	}
}

func TestReseal(t *testing.T) {
	c := newCluster(t, start())
	d, err := c.Document.Announce(c.secret, start())
	c.must(err)
	to := NewSecret()
	for range 2 { // the second time after a crash
		d, err = d.Reseal(c.secret, to, start())
		c.must(err)
		if _, err := d.Open(c.secret); !errors.Is(err, ErrSecret) {
			t.Error("the old secret opens:", err)
		}
		if _, err := d.Open(to); err != nil {
			t.Error(err)
		}
	}
	switched, err := d.Switch(start())
	c.must(err)
	if _, err := switched.Open(to); err != nil {
		t.Error("the next root's key was not sealed anew:", err)
	}
}
