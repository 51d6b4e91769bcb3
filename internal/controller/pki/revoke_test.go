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

func TestRevocations(t *testing.T) {
	none, err := DecodeRevocations(nil)
	if err != nil {
		t.Fatal(err)
	}
	stolen, old, good := peerOf("stolen", "01"), peerOf("h1", "02"), peerOf("h1", "03")
	why := Revocation{At: start(), By: "anna", Why: "stolen from rack 7"}
	list := none.Revoke(stolen.Name, why).RevokeCertificate("02", Revocation{At: start(), By: "anna",
		Until: UntilOf(start().Add(CertificateLife))})
	list = list.Revoke(stolen.Name, Revocation{At: start().Add(day), By: "bert"}) // again
	text, err := list.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "{", `{"new":{"a":1},`, 1))
	if list, err = DecodeRevocations(text); err != nil {
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
		{"allowed again", list.Allow(stolen.Name), stolen, false},
		{"not by that", list.Allow(old.Name), old, true},
		{"pruned too early", list.Prune(start().Add(CertificateLife + Grace)), old, true},
		{"pruned", list.Prune(start().Add(CertificateLife + Grace + 1)), old, false},
		{"never pruned", list.Prune(start().AddDate(50, 0, 0)), stolen, true},
	} {
		t.Run(row.what, func(t *testing.T) {
			err := row.list.Check(row.p)
			if isRevoked(err) != row.want {
				t.Error(err)
			}
			if text, err := row.list.Encode(); err != nil || row.list != none && !strings.Contains(string(text),
				`"new":{"a":1}`) {
				t.Errorf("%s %v", text, err)
			}
		})
	}
	if err := list.Check(stolen); !strings.Contains(err.Error(),
		"heddle://abc/host/stolen: it was revoked on 2027-03-01 12:00 UTC by anna (stolen from rack 7)") {
		t.Error(err)
	}
	if list.Prune(start()) != list {
		t.Error("a list is written again of which nothing goes")
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
	list := none.Revoke(bad.Name, Revocation{At: start(), By: "anna"})
	if n := g.Set(list); n != 2 || len(cut) != 2 || !isRevoked(cut["bad 1"]) || !isRevoked(cut["bad 2"]) {
		t.Errorf("%d: %v", n, cut)
	}
	leave2()
	clear(cut)
	if n := g.Set(list); n != 0 || len(cut) != 0 {
		t.Errorf("cut twice: %v", cut)
	}
	if _, err := g.Enter(bad, nil); !isRevoked(err) || !isRevoked(g.Check(bad)) || g.Check(good) != nil {
		t.Error(err)
	}
}

// Whenever a stream begins while the list changes: it is refused or cut, never missed.
func TestGate_MissesNobody(t *testing.T) {
	none, _ := DecodeRevocations(nil)
	bad := peerOf("bad", "01")
	list := none.Revoke(bad.Name, Revocation{At: start(), By: "anna"})
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
		wg.Go(func() { g.Set(list) })
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
	g.Set(none.Revoke(p.Name, Revocation{At: start(), By: "anna"}))
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
