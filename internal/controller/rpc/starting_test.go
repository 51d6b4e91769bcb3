package rpc

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// starting is a cluster of two controllers where a guest is being started on esx1, which is at the first one; esx2 is
// at the second one.
func starting(t *testing.T) (c, other *controller, first, second *machine, port string) {
	c = newController(t)
	c.define(leaseText)
	other = controllerOn(t, "c2", c.authority, c.disk)
	for _, one := range []*controller{c, other} {
		one.await("the controllers know each other", func() bool { return len(one.Others()) == 1 })
	}
	rack := map[string]string{"rack": "a"}
	first, second = c.at(c, "esx1", rack), c.at(other, "esx2", rack)
	a := first.claims()
	if port = a.GetPort().GetPort(); port == "" || a.GetRefused() != "" {
		t.Fatal(a)
	}
	other.await("the other controller knows the port", func() bool {
		other.fleet.mu.Lock()
		defer other.fleet.mu.Unlock()
		return portsIn(other.fleet).Port(port) != nil
	})
	return c, other, first, second, port
}

// startFails is as if the host had taken too long to connect the guest: its start has failed.
func (c *controller) startFails(name string) {
	c.starts(name, time.Nanosecond)
}

// starts has what a host is connecting be under way for that long from now on.
func (c *controller) starts(name string, d time.Duration) {
	id := c.idOf(name)
	for _, a := range c.fleet.adapters.Starts.Here(id) {
		c.fleet.adapters.Starts.Begin(id, part.AdapterOf(a.GetVm(), a.GetAdapter()), d)
	}
}

// idOf is a host's id.
func (c *controller) idOf(name string) string {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	return c.fleet.names[name].id
}

func release(c *controller, q *controllerv1.ReleaseStaticPortRequest) error {
	_, err := portsIn(c.fleet).ReleaseStaticPort(c.t.Context(), q)
	return err
}

// What a host reported before it claimed a port says nothing about the guest that is being started: neither is the port
// released, nor does another host get it, at whichever controller. The guest's start may fail.
func TestS78_APortIsInUseFromItsClaimOn(t *testing.T) {
	c, other, first, second, port := starting(t)
	const starts = "is being connected on host esx1"
	refused := func(want string) {
		t.Helper()
		for _, one := range []*controller{c, other} {
			err := release(one, &controllerv1.ReleaseStaticPortRequest{Port: port, Force: true})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s releases the port: %v", one.id, err)
			}
		}
		if a := second.claims(); !a.GetConflict() || !strings.Contains(a.GetRefused(), want) {
			t.Errorf("another host claims the port: %v", a)
		}
	}
	refused(starts)
	first.runsStatic(port, serves(1))
	c.await("the guest runs on esx1", func() bool { return len(c.ports()) == 1 })
	c.startFails("esx1") // a while later
	refused("on host esx1")
	first.has()
	c.await("the guest has stopped", func() bool { return len(c.ports()) == 0 })
	if a := first.claims(); a.GetRefused() != "" || a.GetPort().GetPort() != port {
		t.Fatal(a)
	}
	refused(starts)
	c.startFails("esx1")
	if a := second.claims(); a.GetRefused() != "" || a.GetPort().GetPort() != port || c.boundTo() != "esx2" {
		t.Errorf("after a start that failed: %v, bound to %q", a, c.boundTo())
	}
}

// A guest that has stopped before its host reported it, or that did not start, holds its port no longer than until the
// host says that.
func TestS78_APortIsHeldUntilTheHostSaysWhatCameOfItsClaim(t *testing.T) {
	c, _, first, second, port := starting(t)
	if a := second.claims(); !a.GetConflict() {
		t.Fatalf("while the guest is being connected: %v", a)
	}
	c.starts("esx1", time.Hour) // that does not end by itself
	first.client.Ended(vmOf, "net0")
	id := c.idOf("esx1")
	c.await("the host has said what came of it", func() bool { return len(c.fleet.adapters.Starts.Here(id)) == 0 })
	if a := second.claims(); a.GetRefused() != "" || a.GetPort().GetPort() != port || c.boundTo() != "esx2" {
		t.Errorf("the guest did not start: %v, bound to %q", a, c.boundTo())
	}
}

// A host that is lost while it starts a guest holds the port: its last report says nothing about that guest.
func TestS100_AHostThatIsLostWhileItStartsAGuestHoldsThePort(t *testing.T) {
	c, other, first, second, _ := starting(t)
	c.PortLease, other.PortLease = time.Hour, time.Hour // no test takes as long
	first.stop()
	c.await("esx1 is lost", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	if a := second.claims(); !a.GetConflict() || !strings.Contains(a.GetRefused(), "is held by host esx1") {
		t.Errorf("another host claims the port: %v", a)
	}
}

// A controller that does not know yet that another one has bound an adapter's port takes it from nobody: the claim
// rests on what the controller knew, and is made again by what it knows then.
func TestS78_AClaimOnWhatWasKnownTakesNoPort(t *testing.T) {
	c := newController(t)
	c.define(leaseText)
	first := c.up("esx1")
	c.up("esx2")
	late := c.behind(nil)
	port := first.claims().GetPort().GetPort()
	late.fleet.mu.Lock()
	h, known := late.fleet.names["esx2"], portsIn(late.fleet).Port(port)
	late.fleet.mu.Unlock()
	if known != nil {
		t.Fatal("the controller knows the port already")
	}
	a := portsIn(late.fleet).Claim(t.Context(), h.id, &part.Conn{}, &controllerv1.PortClaim{Switch: "dvs",
		PortGroup: "web", Vm: vmOf, Adapter: "net0"})
	if !a.GetConflict() || a.GetPort().GetPort() != port || c.boundTo() != "esx1" {
		t.Errorf("%v; the port is bound to %q", a, c.boundTo())
	}
}

// A release that is repeated, or comes late, takes the port from nobody who has got it since.
func TestS77_ALateReleaseTakesThePortFromNobodyElse(t *testing.T) {
	c, other, _, second, port := starting(t)
	c.startFails("esx1")
	late := &controllerv1.ReleaseStaticPortRequest{Port: port, Vm: strings.ToUpper(vmOf), Adapter: "net0", Force: true}
	if err := release(c, late); err != nil {
		t.Fatal(err)
	}
	const next = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
	a := must(second.client.Claim(t.Context(), &controllerv1.PortClaim{Switch: "dvs", PortGroup: "web", Vm: next,
		Adapter: "net0", Port: port}))(t)
	if a.GetRefused() != "" || a.GetPort().GetPort() != port {
		t.Fatal(a)
	}
	other.startFails("esx2") // nothing but its owner protects the port
	for _, q := range []*controllerv1.ReleaseStaticPortRequest{late, {Port: port, Vm: next, Adapter: "net1"}} {
		if err := release(c, q); connect.CodeOf(err) != connect.CodeNotFound ||
			!strings.Contains(err.Error(), "adapter net0 of VM "+next+" has it") {
			t.Errorf("%v: %v", q, err)
		}
	}
	if err := release(c, &controllerv1.ReleaseStaticPortRequest{Port: port, Vm: next}); err != nil {
		t.Error(err)
	}
}
