package pki

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"heddle/internal/identity"
)

func peerOf(id, serial string) *identity.Peer {
	return &identity.Peer{Name: identity.Name{Cluster: "abc", Kind: identity.Host, ID: id}, Serial: serial}
}

func isRevoked(err error) bool { return errors.Is(err, &identity.PeerError{Fault: identity.Revoked}) }

// The list of a version before this one is read, and kept for as long as somebody may need it.
func TestRevocations(t *testing.T) {
	none, err := DecodeRevocations(nil)
	if err != nil {
		t.Fatal(err)
	}
	stolen, old, good := peerOf("stolen", "01"), peerOf("h1", "02"), peerOf("h1", "03")
	list, err := DecodeRevocations([]byte(`{"format":1,"new":{"a":1},"serials":{"02":{"at":"2027-03-01T12:00:00Z",` +
		`"by":"anna","until":"2027-08-28T12:00:00Z"}},"names":{"heddle://abc/host/stolen":{"at":` +
		`"2027-03-01T12:00:00Z","by":"anna","why":"stolen from rack 7"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what string
		list *Revocations
		p    *identity.Peer
		want bool
	}{
		{"nothing is revoked", none, stolen, false},
		{"a host", list, stolen, true},
		{"any certificate of it", list, peerOf("stolen", "99"), true},
		{"one certificate", list, old, true},
		{"the next one of that host", list, good, false},
		{"a controller of the same id", list, &identity.Peer{Name: identity.Name{Cluster: "abc",
			Kind: identity.Controller, ID: "stolen"}}, false},
	} {
		t.Run(row.what, func(t *testing.T) {
			if err := row.list.Check(row.p); isRevoked(err) != row.want {
				t.Error(err)
			}
		})
	}
	if err := list.Check(stolen); !strings.Contains(err.Error(),
		"heddle://abc/host/stolen: it was revoked on 2027-03-01 12:00 UTC by anna (stolen from rack 7)") {
		t.Error(err)
	}
	if list.Over(start().AddDate(50, 0, 0)) {
		t.Error("a list goes that has an entry without an end")
	}
	delete(list.Names, stolen.Name.String())
	if list.Over(start().Add(CertificateLife+Grace)) || !list.Over(start().Add(CertificateLife+Grace+1)) {
		t.Error("a list does not go when its last entry has ended")
	}
	for _, bad := range []string{"{", "[]", `{"format":2}`, `{}`} {
		if _, err := DecodeRevocations([]byte(bad)); err == nil {
			t.Errorf("%s is read: nobody would be revoked", bad)
		}
	}
}

func TestGate_CutsThoseWhoAreRevoked(t *testing.T) {
	none, _ := DecodeRevocations(nil)
	g := NewGate(none)
	cut := map[string]error{}
	enter := func(p *identity.Peer, as string) func() {
		leave, err := g.Enter(p, func(err error) { cut[as] = err })
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	bad, good := peerOf("bad", "01"), peerOf("good", "02")
	enter(bad, "bad 1")
	leave2 := enter(bad, "bad 2")
	leave3 := enter(bad, "gone before")
	enter(good, "good")
	leave3()
	list := map[string]Revocation{RevokedAs(bad.Name): {At: start(), By: "anna"}}
	if n := g.SetNames(list); n != 2 || len(cut) != 2 || !isRevoked(cut["bad 1"]) || !isRevoked(cut["bad 2"]) {
		t.Errorf("%d: %v", n, cut)
	}
	leave2()
	clear(cut)
	if n := g.SetNames(list); n != 0 || len(cut) != 0 {
		t.Errorf("cut twice: %v", cut)
	}
	if _, err := g.Enter(bad, nil); !isRevoked(err) || !isRevoked(g.Check(bad)) || g.Check(good) != nil {
		t.Error(err)
	}
	if g.SetName(RevokedAs(bad.Name), nil); g.Check(bad) != nil {
		t.Error("allowed again:", g.Check(bad))
	}
}

// Whenever a stream begins while the list changes: it is refused or cut, never missed.
func TestGate_MissesNobody(t *testing.T) {
	none, _ := DecodeRevocations(nil)
	bad := peerOf("bad", "01")
	list := map[string]Revocation{RevokedAs(bad.Name): {At: start(), By: "anna"}}
	for range 200 {
		g := NewGate(none)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { // ends only when it is refused or cut
				cut := make(chan error, 1)
				leave, err := g.Enter(bad, func(err error) { cut <- err })
				if err == nil {
					err = <-cut
					leave()
				}
				if !isRevoked(err) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { g.SetNames(list) })
		wg.Wait()
		if _, err := g.Enter(bad, nil); err == nil {
			t.Fatal("entered after the list was set")
		}
		if len(g.in) != 0 {
			t.Fatal("left over:", len(g.in))
		}
	}
}

// A host is revoked while it is connected: its streams end, and the next handshake fails.
func TestHandshake_RevokedWhileConnected(t *testing.T) {
	c := newCluster(t, start())
	none, err := DecodeRevocations(nil)
	c.must(err)
	g := NewGate(none)
	srv := c.server(c.controller("c1", start()), start())
	srv.Revoked = g.Check
	client := c.client(c.host("h1", start()), start()).TLS()
	m := connect(t, srv.TLS(), client)
	p, err := srv.Peer(m.at)
	c.must(err)
	var why error
	_, err = g.Enter(p, func(err error) { why = err })
	c.must(err)
	g.SetName(RevokedAs(p.Name), &Revocation{At: start(), By: "anna"})
	if !isRevoked(why) {
		t.Error("the stream goes on:", why)
	}
	if _, err := srv.Peer(m.at); !isRevoked(err) {
		t.Error("a call on the open connection:", err)
	}
	if m := connect(t, srv.TLS(), client); !isRevoked(m.server) || m.client == nil {
		t.Error(m.server, m.client)
	}
}
