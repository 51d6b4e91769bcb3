package pki

import (
	"crypto/x509"
	"testing"
	"time"

	"heddle/internal/identity"
)

// chainOf is what a controller of a cluster shows.
func chainOf(t *testing.T, d *Document, s Secret) (shown []*x509.Certificate, trust identity.Trust) {
	t.Helper()
	a, err := d.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := key.Request()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := a.IssueController(csr, Subject{ID: "c1"}, start())
	if err != nil {
		t.Fatal(err)
	}
	for _, der := range a.Serving(issued.Certificate, key).Certificate.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, c)
	}
	return shown, a.Trust()
}

// Who has pinned the root of a cluster follows a rotation that it sees, and takes no root that none of its own has
// signed.
func TestLearn_FollowsARotation(t *testing.T) {
	secret := NewSecret()
	d, err := New("lab", secret, start())
	if err != nil {
		t.Fatal(err)
	}
	shown, known := chainOf(t, d, secret)
	if _, changed := known.Learn(shown, start()); changed {
		t.Error("nothing is new")
	}
	for _, step := range []func() (*Document, error){
		func() (*Document, error) { return d.Announce(secret, start()) },
		func() (*Document, error) { return d.Switch(start()) },
		func() (*Document, error) { return d.Finish(start()) },
	} {
		if d, err = step(); err != nil {
			t.Fatal(err)
		}
		var want identity.Trust
		shown, want = chainOf(t, d, secret)
		if _, err := known.Controller(shown, identity.Clock{Now: start}); err != nil {
			t.Fatalf("%s: the controller is not believed: %v", d.Stage, err)
		}
		next, changed := known.Learn(shown, start())
		if !changed || len(next.Roots) != len(want.Roots) || !next.Roots[0].Equal(want.Roots[0]) {
			t.Fatalf("%s: %d roots are learned of %d", d.Stage, len(next.Roots), len(want.Roots))
		}
		known = next
	}
	// A root of the same name that another authority made.
	other, err := New("lab", secret, start())
	if err != nil {
		t.Fatal(err)
	}
	other.Cluster = d.Cluster
	forged, _, _, err := newRoot(other, secret, start())
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(forged.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	if next, changed := known.Learn(append(shown, c), start()); changed || len(next.Roots) != 1 {
		t.Error("a root that nobody has signed is learned")
	}
	if next, changed := known.Learn([]*x509.Certificate{shown[0], c}, start().Add(time.Hour)); changed ||
		len(next.Roots) != 1 {
		t.Error("all that was known is given up for it")
	}
}
