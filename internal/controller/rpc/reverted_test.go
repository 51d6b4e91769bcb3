package rpc

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/state"
	"heddle/internal/slice"
)

// through is a definition of one switch with a port group of that VLAN.
const through = "switches: [{name: dvs, uplinks: [{name: uplink1}], " +
	"portGroups: [{name: mgmt, vlan: {access: VLAN}}]}]\n" +
	"templates: [{name: all, switches: [{name: dvs}]}]\n"

func (c *controller) defineVLAN(vlan string) { c.define(strings.Replace(through, "VLAN", vlan, 1)) }

// goesBack lets the machine lose its controllers by what it has, and come back with what it had before.
func (m *machine) goesBack(to *state.Slice) {
	m.stop()
	m.mu.Lock()
	r := m.report.GetReverted()
	hash := m.given.Set().Hash()
	next := &controllerv1.RevertedSlice{Why: "no controller answered", Times: 1,
		Version: &controllerv1.SliceVersion{Revision: m.given.Revision, Hash: hash[:]}}
	if string(r.GetVersion().GetHash()) == string(hash[:]) {
		next.Times += r.GetTimes()
	}
	m.given, m.report = to, &controllerv1.HostReport{Reverted: next}
	m.mu.Unlock()
	m.start()
}

func (m *machine) content() slice.Hash {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.given.Set().Hash()
}

// A host that went back from a version is not sent it again until somebody changes it, or has the host try again: once.
func TestS81_AVersionThatCutAHostOffIsNotSentToItAgain(t *testing.T) {
	c := newController(t)
	c.defineVLAN("10")
	m, other := c.up("a"), c.up("b")
	good := m.given
	reverted := func() {
		t.Helper()
		m.goesBack(good)
		c.await("a has gone back", func() bool { return c.state("a") == controllerv1.HostState_HOST_STATE_REVERTED })
	}
	up := func() {
		t.Helper()
		c.await("a is up", func() bool { return c.state("a") == controllerv1.HostState_HOST_STATE_UP })
	}
	retry := func() error {
		_, err := people{c.Server}.RetryHost(t.Context(), &controllerv1.RetryHostRequest{Name: "a"})
		return err
	}
	if err := retry(); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("a host that is up tries again: %v", err)
	}
	c.defineVLAN("66")
	up()
	c.await("both have it", func() bool {
		return m.content() != good.Set().Hash() && other.content() == m.content()
	})
	up()
	bad := m.content()
	reverted()
	why := strings.Join(c.shown("a").GetProblems(), "\n")
	if !strings.Contains(why, "no controller answered") || !strings.Contains(why, "heddle host retry a") {
		t.Errorf("the controller says %q", why)
	}
	if m.content() != good.Set().Hash() {
		t.Error("the host was sent what it went back from")
	}
	if got := c.state("b"); got != controllerv1.HostState_HOST_STATE_UP {
		t.Errorf("the other host is %s", got)
	}
	if err := retry(); err != nil {
		t.Fatal(err)
	}
	up()
	if m.content() != bad {
		t.Error("a host that shall try again has something else")
	}
	reverted() // and is not sent it over and over
	if m.content() == bad || m.report.GetReverted().GetTimes() != 2 {
		t.Errorf("it went back: %+v", m.report)
	}
	c.defineVLAN("67")
	up()
	if m.content() == bad {
		t.Error("a change does not reach a host that went back")
	}
}

func TestS81_AHostAsksWhetherItReachesAController(t *testing.T) {
	c := newController(t)
	m := c.up("a")
	if err := m.client.Reach(t.Context()); err != nil {
		t.Errorf("by its conversation: %v", err)
	}
	m.stop()
	if err := m.client.Reach(t.Context()); err != nil {
		t.Errorf("without a conversation: %v", err)
	}
	if err := m.record.KeepControllers([]string{"127.0.0.1:1", c.address}); err != nil {
		t.Fatal(err)
	}
	if err := m.client.Reach(t.Context()); err != nil {
		t.Errorf("one of two answers: %v", err)
	}
	if err := m.record.KeepControllers([]string{"127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if err := m.client.Reach(t.Context()); err == nil {
		t.Error("nobody is there, and answers")
	}
}

// A controller of the version before does not know the question, and has answered all the same.
func TestS81_AControllerThatIsTooOldToBeAskedAnswers(t *testing.T) {
	c := newController(t)
	m := c.joins("a").start()
	m.stop()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	old := c.HTTP(http.NotFoundHandler())
	var g sync.WaitGroup
	g.Go(func() {
		if err := old.Serve(c.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := old.Close(); err != nil {
			t.Error(err)
		}
		g.Wait()
	})
	if err := m.record.KeepControllers([]string{l.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	if err := m.client.Reach(t.Context()); err != nil {
		t.Error(err)
	}
}
