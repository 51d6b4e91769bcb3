package pki

import (
	"testing"

	"heddle/internal/identity"
)

// A host's certificates count that its record has, and those that are newer than all that were withdrawn: another
// controller may have made one just now.
func TestGate_HoldsAHostToItsRecord(t *testing.T) {
	c := newCluster(t, start())
	none, _ := DecodeRevocations(nil)
	g := NewGate(none)
	peer := func(p party) *identity.Peer {
		return &identity.Peer{Name: identity.Name{Cluster: c.Document.Cluster, Kind: identity.Host, ID: "h1"},
			Serial: identity.SerialOf(p.cert), Certificate: p.cert}
	}
	first, second, third := peer(c.host("h1", start())), peer(c.host("h1", start().Add(day))),
		peer(c.host("h1", start().Add(2*day)))
	var cut error
	if _, err := g.Enter(first, func(err error) { cut = err }); err != nil {
		t.Fatal("before anything is known:", err)
	}
	if n := g.SetHost("h1", Holding{Serials: []string{first.Serial}}); n != 0 || g.Check(second) != nil {
		t.Error("nothing was withdrawn:", n, g.Check(second))
	}
	h := Holding{Serials: []string{second.Serial}, Since: start().Add(day), Why: Revocation{At: start(), By: "us"}}
	if n := g.SetHost("h1", h); n != 1 || !isRevoked(cut) {
		t.Error("who has one that is withdrawn goes on:", n, cut)
	}
	if !isRevoked(g.Check(first)) || g.Check(second) != nil || g.Check(third) != nil {
		t.Error(g.Check(first), g.Check(second), g.Check(third))
	}
	h.Since = start().Add(20 * day) // made by a controller whose clock was ahead, and withdrawn
	if g.SetHost("h1", h); g.Check(second) != nil || !isRevoked(g.Check(third)) {
		t.Error("the record says what counts:", g.Check(second), g.Check(third))
	}
	other := *third
	other.Name.ID = "h2"
	if err := g.Check(&other); err != nil {
		t.Error("another host:", err)
	}
}
