package rpc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/part"
	staticports "heddle/internal/feature/staticports/fleet"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
	"heddle/internal/test/testkit"
)

// leaseText has a port group with static ports.
var leaseText = strings.Replace(clusterText, "{name: web, vlan: {access: 10}}",
	"{name: web, vlan: {access: 10}, binding: elastic}", 1)

// claims asks for the adapter's port in port group web, as a host does whose VM starts.
func (m *machine) claims() *controllerv1.PortAnswer {
	m.c.t.Helper()
	return m.asks(&controllerv1.PortClaim{Switch: "dvs", PortGroup: "web", Vm: vmOf, Adapter: "net0"})
}

// asks waits for a controller's answer: one that has just taken the host in may not be known to the host yet.
func (m *machine) asks(q *controllerv1.PortClaim) (a *controllerv1.PortAnswer) {
	m.c.t.Helper()
	m.c.await("a controller answers the host", func() bool {
		var err error
		a, err = m.client.Claim(m.c.t.Context(), q)
		if err != nil && !errors.Is(err, cluster.ErrNoController) {
			m.c.t.Fatal(err)
		}
		return err == nil
	})
	return a
}

// lost is as if the host had been without a controller for so long.
func (c *controller) lost(name string, d time.Duration) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	c.fleet.names[name].since = time.Now().Add(-d)
}

// boundTo is the name of the host where the adapter's port is bound.
func (c *controller) boundTo() string {
	c.t.Helper()
	for _, p := range must(portsIn(c.fleet).ListStaticPorts(c.t.Context(), nil))(c.t).GetPorts() {
		if p.GetBound() && p.GetVm() == vmOf {
			return p.GetHost()
		}
	}
	return ""
}

// runsStatic lets a host report that it serves the guest by that static port.
func (m *machine) runsStatic(port string, p *controllerv1.HostPort) {
	p.Port = port
	m.mu.Lock()
	m.report = &controllerv1.HostReport{Ports: []*controllerv1.HostPort{p}}
	m.mu.Unlock()
	m.client.Changed()
}

// lease is a cluster where esx1 serves the guest by a static port, and has lost its controllers.
func lease(t *testing.T) (c *controller, first, second *machine, port string) {
	c = newController(t)
	c.define(leaseText)
	first, second = c.up("esx1"), c.up("esx2")
	a := first.claims()
	if port = a.GetPort().GetPort(); port == "" {
		t.Fatal(a)
	}
	first.runsStatic(port, serves(1))
	c.await("the guest runs on esx1", func() bool { return len(c.ports()) == 1 })
	first.stop()
	c.await("esx1 is lost", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	return c, first, second, port
}

// The host that is lost holds its port while its lease lasts: the VM that starts elsewhere gets a conflict port. After
// it the port is the other host's. When the lost host comes back with the guest, that is a conflict of both.
func TestS100_ALostHostKeepsItsPortsForItsLease(t *testing.T) {
	c, first, second, port := lease(t)
	c.PortLease = time.Hour // no test takes as long
	a := second.claims()
	if !a.GetConflict() || !strings.Contains(a.GetRefused(), "is held by host esx1, which has no controller for") ||
		a.GetPort().GetPort() != port {
		t.Errorf("while the lease lasts: %v", a)
	}
	if got := c.boundTo(); got != "esx1" {
		t.Errorf("the port is bound to %q", got)
	}
	c.lost("esx1", 2*time.Hour)
	if a := second.claims(); a.GetConflict() || a.GetRefused() != "" || a.GetPort().GetPort() != port {
		t.Errorf("after the lease: %v", a)
	}
	c.await("the port is bound to esx2", func() bool { return c.boundTo() == "esx2" })
	second.runsStatic(port, serves(1))
	c.await("the guest runs on esx2", func() bool { return len(c.ports()) == 2 })
	first.start()
	conflict := func(name string) bool {
		return len(c.fleet.adapters.Marks(c.idOf(name))) == 1
	}
	c.await("both are in conflict", func() bool { return conflict("esx1") && conflict("esx2") })
	if got := c.boundTo(); got != "esx2" {
		t.Errorf("the port is bound to %q", got)
	}
}

// An operator may take the port from a lost host by force. From one that answers nothing is taken.
func TestS100_ALeaseIsOverriddenByForce(t *testing.T) {
	settle := func(c *controller, force bool) error {
		_, err := portsIn(c.fleet).SettleStaticPort(c.t.Context(), &controllerv1.SettleStaticPortRequest{Vm: vmOf,
			Adapter: "net0", Host: "esx2", Force: force})
		return err
	}
	release := func(port string) func(c *controller, force bool) error {
		return func(c *controller, force bool) error {
			_, err := portsIn(c.fleet).ReleaseStaticPort(c.t.Context(), &controllerv1.ReleaseStaticPortRequest{
				Port: port, Force: force})
			return err
		}
	}
	c, first, second, port := lease(t)
	c.PortLease = time.Hour
	held := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "is held by host esx1") {
			t.Errorf("%s without force: %v", what, err)
		}
	}
	held("release", release(port)(c, false))
	second.runsStatic("", serves(2))
	c.await("the guest runs on esx2", func() bool { return len(c.ports()) == 2 })
	held("settle", settle(c, false))
	if err := settle(c, true); err != nil {
		t.Error(err)
	}
	c.await("the port is bound to esx2", func() bool { return c.boundTo() == "esx2" })
	if err := release(port)(c, true); err == nil || !strings.Contains(err.Error(), "is in use on host esx2") {
		t.Errorf("the port of a guest that runs is released: %v", err)
	}
	second.runsStatic(port, waiting(2))
	first.start()
	c.await("the port is bound to esx1", func() bool { return c.boundTo() == "esx1" })
	first.stop()
	c.await("esx1 is lost", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	if err := release(port)(c, true); err != nil {
		t.Error(err)
	}
	c.await("it is free", func() bool { return c.boundTo() == "" })
}

// overtaken is a store in which something happens right before a claim is written.
type overtaken struct {
	capability.Store
	first func(store.ClaimRequest)
}

func (o overtaken) Claim(ctx context.Context, r store.ClaimRequest) (store.Port, error) {
	o.first(r)
	return o.Store.Claim(ctx, r)
}

// A port is settled on what was looked at: one that is bound on another host than the operator says, or that somebody
// binds anew before it is written, stays as it is.
func TestS78_APortThatHasChangedIsNotSettled(t *testing.T) {
	c, first, second, port := lease(t)
	c.PortLease = time.Hour
	second.runsStatic("", serves(2))
	c.await("the guest runs on esx2", func() bool { return len(c.ports()) == 2 })
	q := &controllerv1.SettleStaticPortRequest{Vm: vmOf, Adapter: "net0", Host: "esx2", Force: true, From: "esx3"}
	_, err := portsIn(c.fleet).SettleStaticPort(t.Context(), q)
	if err == nil || !strings.Contains(err.Error(), "is bound on host esx1 by now, not on esx3") {
		t.Errorf("from a host that has not got it: %v", err)
	}
	q.From = "esx1"
	ports := portsIn(c.fleet)
	before := ports.Store
	ports.Store = overtaken{before, func(r store.ClaimRequest) {
		if r.Port != port || r.Was == nil {
			t.Errorf("the claim does not rest on what was looked at: %+v", r)
		}
		again := store.ClaimRequest{PortGroup: r.PortGroup, Port: port, Binding: r.Binding}
		again.Host, again.Claim = first.record.Host(), store.Claim{Run: "another", Number: 9}
		if _, err := c.disk.Claim(t.Context(), again); err != nil {
			t.Error(err)
		}
	}}
	_, err = ports.SettleStaticPort(t.Context(), q)
	ports.Store = before
	if connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("its host has claimed it again: %v", err)
	}
	if got := c.boundTo(); got != "esx1" {
		t.Errorf("the port is bound to %q", got)
	}
	if _, err := portsIn(c.fleet).SettleStaticPort(t.Context(), q); err != nil {
		t.Errorf("settled by what there is now: %v", err)
	}
	c.await("the port is bound to esx2", func() bool { return c.boundTo() == "esx2" })
	q.Host, q.From = "esx1", "esx1"
	if _, err := portsIn(c.fleet).SettleStaticPort(t.Context(), q); err == nil ||
		!strings.Contains(err.Error(), "is bound on host esx2 by now, not on esx1") {
		t.Errorf("by what was there before: %v", err)
	}
}

// A port is settled on the binding that its operator has seen: once its host has claimed it again, what was seen is
// refused with what there is now. A caller of an earlier version names no binding.
func TestS78_APortIsSettledOnTheBindingThatWasSeen(t *testing.T) {
	c, first, second, port := lease(t)
	c.PortLease = time.Hour
	seen := func() (binding string) {
		t.Helper()
		list, err := portsIn(c.fleet).ListStaticPorts(t.Context(), &controllerv1.ListStaticPortsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.GetPorts() {
			if p.GetVm() == vmOf && p.GetBound() {
				binding = p.GetBinding()
			}
		}
		return binding
	}
	second.runsStatic("", serves(2))
	c.await("the guest runs on esx2", func() bool { return len(c.ports()) == 2 })
	before := seen()
	again := store.ClaimRequest{PortGroup: "dvs/web", Port: port, Binding: store.Binding{Host: first.record.Host(),
		VM: vmOf, Adapter: "net0", Claim: store.Claim{Run: "another", Number: 9}}}
	if _, err := c.disk.Claim(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	c.await("the claim is known", func() bool { return seen() != before })
	settle := func(binding string) error {
		_, err := portsIn(c.fleet).SettleStaticPort(t.Context(), &controllerv1.SettleStaticPortRequest{Vm: vmOf,
			Adapter: "net0", Host: "esx2", From: "esx1", Force: true, Binding: binding})
		return err
	}
	now := seen()
	for _, binding := range []string{before, staticports.None} {
		err := settle(binding)
		if connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "is not bound by "+binding+
			" any more: static port "+port+" is its port now, bound on host esx1 (binding "+now+")") {
			t.Errorf("settled on %q: %v", binding, err)
		}
	}
	if got := c.boundTo(); got != "esx1" || len(before) != staticports.SeenDigits {
		t.Errorf("the port is bound to %q; it was by %q", got, before)
	}
	if err := settle(now); err != nil {
		t.Errorf("settled on what there is now: %v", err)
	}
	c.await("the port is bound to esx2", func() bool { return c.boundTo() == "esx2" })
}

// stoppedLease is a cluster where esx1 holds a static port, has said that its guest does not run there, and has lost
// its controllers.
func stoppedLease(t *testing.T) (c *controller, second *machine) {
	c, first, second, port := lease(t)
	c.PortLease = time.Hour
	first.runsStatic(port, waiting(1))
	first.start()
	c.await("the guest runs there no more", func() bool {
		id := c.idOf("esx1")
		return slices.ContainsFunc(c.fleet.adapters.Ports(part.AdapterOf(vmOf, "net0")), func(p adapters.Port) bool {
			return p.Host == id && !p.Runs && !p.Disconnected
		})
	})
	first.stop()
	c.await("esx1 is lost", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	return c, second
}

// A lost host that said last that its guest does not run there holds nothing. One of which a controller that has just
// started has not heard yet does, from the controller's start on.
func TestS100_ALeaseIsOfAPortThatMayBeInUse(t *testing.T) {
	c, second := stoppedLease(t)
	c.fleet.mu.Lock()
	h := c.fleet.names["esx1"]
	said := h.report
	h.report = nil // as after a start of the controller
	c.fleet.mu.Unlock()
	if a := second.claims(); !a.GetConflict() {
		t.Errorf("nothing is known of what runs on the lost host: %v", a)
	}
	c.fleet.mu.Lock()
	h.report = said
	c.fleet.mu.Unlock()
	if a := second.claims(); a.GetConflict() || a.GetRefused() != "" {
		t.Errorf("the guest does not run there: %v", a)
	}
}

// What a lost host said last may be older than its guest: it may have gone on to a controller that does not answer, or
// that has started since and remembers nothing.
func TestS100_AnOldReportEndsNoLease(t *testing.T) {
	c, second := stoppedLease(t)
	claims := func(when string, free bool) {
		t.Helper()
		a := second.claims()
		if a.GetConflict() == free || strings.Contains(a.GetRefused(), "is held by host esx1") == free {
			t.Errorf("%s: %v", when, a)
		}
	}
	away := peers.New(c.disk)
	if err := away.Announce(t.Context(), peers.Controller{ID: "c2", Name: "c2", Address: testkit.Unused(
		t)}); err != nil {
		t.Fatal(err)
	}
	c.await("another controller is known", func() bool { return len(c.Others()) == 1 })
	claims("another controller does not answer", false)
	other := controllerOn(t, "c2", c.authority, c.disk)
	c.await("it is where it is now", func() bool { return c.Others()[0].Address == other.address })
	other.await("it knows the hosts", func() bool {
		other.fleet.mu.Lock()
		defer other.fleet.mu.Unlock()
		return other.fleet.names["esx1"] != nil
	})
	c.lost("esx1", 2*time.Hour) // longer than a lease lasts, but the other one has just started
	claims("the other controller remembers nothing", false)
	other.lost("esx1", 3*time.Hour) // it was there all the time, and has never had the host
	c.lost("esx1", time.Minute)
	claims("all know what the host said last", true)
}
