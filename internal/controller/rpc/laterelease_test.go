package rpc

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// talking is a host and its conversation with a controller.
func (c *controller) talking(name string) (*host, *conn) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	h := c.fleet.names[name]
	return h, h.conn
}

// A host that does not know whether a claim of its was carried out gives up whatever port the adapter has there, and
// nothing that another host has.
func TestS79_AHostGivesUpThePortThatItDoesNotKnow(t *testing.T) {
	c := newController(t)
	c.define(leaseText)
	first, second := c.up("esx1"), c.up("esx2")
	release := &controllerv1.PortClaim{Switch: "dvs", PortGroup: "web", Vm: strings.ToUpper(vmOf), Adapter: "net0",
		Release: true}
	if a := first.asks(proto.CloneOf(release)); a.GetRefused() != "" {
		t.Errorf("of an adapter without a port: %v", a)
	}
	if first.claims().GetPort() == nil || c.boundTo() != "esx1" {
		t.Fatalf("it is bound to %q", c.boundTo())
	}
	if a := second.asks(proto.CloneOf(release)); a.GetRefused() != "" || c.boundTo() != "esx1" {
		t.Errorf("another host's release: %v; it is bound to %q", a, c.boundTo())
	}
	if a := first.asks(proto.CloneOf(release)); a.GetRefused() != "" {
		t.Errorf("its release: %v", a)
	}
	c.await("the port is free", func() bool { return c.boundTo() == "" })
}

// A release that a host's agent asked for before it died, and that its controller takes up only now, leaves the port to
// what the agent's next start has claimed at another controller. The first one may not know that the agent has died: it
// is cut off from the host and from the other controller, but not from etcd.
func TestS79_ADeadAgentsReleaseIsTakenUpLate(t *testing.T) {
	c1 := newController(t)
	c2 := controllerOn(t, "c2", c1.authority, c1.disk)
	c1.define(leaseText)
	m := &machine{c: c1, dir: t.TempDir(), report: &controllerv1.HostReport{}, at: c1.address, begun: 7}
	m.join("esx1", c1.token(), false)
	m.start()
	c1.await("the host is connected", func() bool { return c1.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	port := m.claims().GetPort().GetPort()
	h, dead := c1.talking("esx1")
	m.stop()
	m.at, m.begun = c2.address, 8
	m.start()
	c2.await("the host is there again", func() bool { return c2.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	if got := m.claims().GetPort().GetPort(); got != port {
		t.Fatalf("the next start gets port %q, and the one before had %q", got, port)
	}
	q := &controllerv1.PortClaim{Number: 2, Switch: "dvs", PortGroup: "web", Vm: vmOf, Adapter: "net0", Port: port,
		Release: true}
	a := portsIn(c1.fleet).Claim(t.Context(), h.id, dead.Conn, q)
	if !strings.Contains(a.GetRefused(), "stays bound: it was claimed again meanwhile") {
		t.Errorf("the late release: %v", a)
	}
	if got := c2.boundTo(); got != "esx1" {
		t.Errorf("the port is bound to %q", got)
	}
	h, now := c2.talking("esx1")
	if a := portsIn(c2.fleet).Claim(t.Context(), h.id, now.Conn, q); a.GetRefused() != "" {
		t.Errorf("a release of the start that has claimed it: %v", a)
	}
	c2.await("the port is free", func() bool { return c2.boundTo() == "" })
}
