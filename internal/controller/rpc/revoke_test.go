package rpc

import (
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/identity"
	"heddle/internal/platform/store"
)

// A host that is removed is cut off, told why and not let in again; it goes on by what it has.
func TestS104_ARemovedHostIsCutOff(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m, other := c.up("esx1"), c.up("esx2")
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx1"}))(t)
	c.await("it is told why", func() bool { return m.heard("it was revoked", "esx1 was taken out of the cluster") })
	c.await("it is refused in the handshake", func() bool {
		return m.heard("refuses this host", "taken out of the cluster")
	})
	if given, err := m.Given(t.Context()); err != nil || given.Set().Len() != 3 {
		t.Errorf("it has %v (%v)", given, err)
	}
	if c.shown("esx1") != nil || other.lost() != 0 {
		t.Errorf("listed: %v; the other host: %v", c.shown("esx1"), other.said)
	}
	// After a restart of the controller too, and the agent's that was not told.
	m.stop()
	name := identity.Name{Cluster: c.authority.Trust().Cluster, Kind: identity.Host, ID: m.record.Host()}
	if err := must(New(c.Options))(t).gate.Check(&identity.Peer{Name: name}); err == nil {
		t.Error("a controller that starts does not know that the host is revoked")
	}
	again := &machine{c: c, dir: m.dir, record: must(cluster.Load(m.dir))(t)}
	again.start()
	c.await("it is refused", func() bool { return again.heard("refuses the certificate") })
}

// A host that was installed anew takes its place, and the certificates from before count no more.
func TestS104_AReplacedHostIsCutOff(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	c.pass(61 * day)
	c.poke("esx1")
	c.await("two certificates", func() bool { return c.log.count("host connected", "esx1") == 2 })
	if n := len(c.serials("esx1")); n != 2 {
		t.Fatalf("it has %d certificates", n)
	}
	id := m.record.Host()
	next := &machine{c: c, dir: t.TempDir(), report: &controllerv1.HostReport{}}
	if _, err := next.ask("esx1", c.token()); err == nil {
		t.Error("it took a name that is taken")
	}
	token := must(people{c.Server}.CreateJoinToken(t.Context(), &controllerv1.CreateJoinTokenRequest{
		Replaces: "esx1"}))(t).GetToken()
	next.join("esx1", token, true)
	c.await("the one before is told why", func() bool { return m.heard("it was revoked", "esx1 joined anew") })
	next.start()
	c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	c.await("the one before is refused", func() bool { return m.heard("refuses this host") })
	if next.record.Host() != id || next.lost() != 0 {
		t.Errorf("it is host %s, and the place was of %s; %v", next.record.Host(), id, next.said)
	}
}

// A token that takes a host's place is for that very host: another one that has the name by now is not taken out by it,
// and it ends with the host. Who has a token for a new host is not told which hosts there are.
func TestS147_AReplaceTokenIsForOneHost(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	token := func() string {
		return must(people{c.Server}.CreateJoinToken(t.Context(), &controllerv1.CreateJoinTokenRequest{
			Replaces: "esx1"}))(t).GetToken()
	}
	join := func(name, token string, replace bool) error {
		_, err := c.JoinHost(t.Context(), &controllerv1.JoinHostRequest{Token: token, Name: name, Replace: replace,
			Csr: must((&machine{c: c, dir: t.TempDir()}).keyOf().Request())(t)})
		return err
	}
	if err := c.joinAt(c.Server, "esx1"); err != nil {
		t.Fatal(err)
	}
	removed := token()
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx1"}))(t)
	if n := len(c.Store.List(store.KindToken)); n != 1 { // that by which the host joined
		t.Errorf("%d tokens are left", n)
	}
	if err := join("esx1", removed, true); err == nil {
		t.Error("a token of a host that was removed takes a place")
	}
	if err := c.joinAt(c.Server, "esx1"); err != nil {
		t.Fatal(err)
	}
	kept := token()
	o, _ := c.Store.Get(store.Key{Kind: store.KindHost, Name: "esx1"})
	c.write(store.Change{Key: o.Key, Delete: true, IfVersion: o.Version}) // by a controller that leaves the tokens
	if err := c.joinAt(c.Server, "esx1"); err != nil {
		t.Fatal(err)
	}
	if err := join("esx1", kept, true); err == nil || !strings.Contains(err.Error(), "taken out of the cluster since") {
		t.Errorf("a token of another host of that name: %v", err)
	}
	if err := join("esx1", c.token(), false); err == nil || strings.Contains(err.Error(), "the cluster has") {
		t.Errorf("a name that is taken: %v", err)
	}
}
