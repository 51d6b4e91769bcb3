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

// What is heard late of a host's record changes nothing, and a host that was removed leaves nothing behind.
func TestGate_AnOlderRecordChangesNothing(t *testing.T) {
	c := newCluster(t, start())
	none, _ := DecodeRevocations(nil)
	g := NewGate(none)
	cert := c.host("h1", start())
	p := &identity.Peer{Name: identity.Name{Cluster: c.Document.Cluster, Kind: identity.Host, ID: "h1"},
		Serial: identity.SerialOf(cert.cert), Certificate: cert.cert}
	withdrawn := Holding{Version: 7, Serials: []string{"other"}, Since: start().Add(day),
		Why: Revocation{At: start(), By: "us"}}
	g.SetHost("h1", withdrawn)
	g.SetHost("h1", Holding{Version: 5, Serials: []string{p.Serial}})
	if !isRevoked(g.Check(p)) {
		t.Error("an older record has brought a certificate back")
	}
	g.SetHosts(map[string]Holding{"h1": {Version: 6, Serials: []string{p.Serial}}})
	if !isRevoked(g.Check(p)) {
		t.Error("an older state has brought a certificate back")
	}
	g.DropHost("h1")
	if n := len(g.hosts); n != 0 {
		t.Errorf("%d hosts are left", n)
	}
}

// Who is connected with a certificate that the record has no more is cut off, also where the instant up to which
// certificates are withdrawn stays.
func TestGate_ACertificateThatLeavesTheRecordIsCutOff(t *testing.T) {
	c := newCluster(t, start())
	none, _ := DecodeRevocations(nil)
	g := NewGate(none)
	cert := c.host("h1", start())
	p := &identity.Peer{Name: identity.Name{Cluster: c.Document.Cluster, Kind: identity.Host, ID: "h1"},
		Serial: identity.SerialOf(cert.cert), Certificate: cert.cert}
	h := Holding{Version: 1, Serials: []string{p.Serial, "next"}, Since: start().Add(day),
		Why: Revocation{At: start(), By: "us"}}
	g.SetHost("h1", h)
	var cut error
	if _, err := g.Enter(p, func(err error) { cut = err }); err != nil {
		t.Fatal(err)
	}
	h.Version, h.Serials = 2, []string{"next"}
	if n := g.SetHost("h1", h); n != 1 || !isRevoked(cut) {
		t.Errorf("%d connections were ended: %v", n, cut)
	}
}
