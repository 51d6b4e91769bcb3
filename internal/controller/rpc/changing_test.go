package rpc

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// goesTo has a machine change its controller, in the same run of its agent.
func (m *machine) goesTo(other *controller) {
	m.c.t.Helper()
	m.stop()
	ctx, cancel := context.WithCancel(context.Background())
	m.client.Membership = pinned{m.record, other.address}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.client.Run(ctx)
	}()
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	m.c.t.Cleanup(m.stop)
	other.await("the host is at the other controller", func() bool {
		other.fleet.mu.Lock()
		defer other.fleet.mu.Unlock()
		h := other.fleet.names[m.record.Name()]
		return h != nil && h.conn != nil
	})
}

// A host that changes its controller while it connects an adapter holds the port: the next controller, which has heard
// no claim, gives it to nobody, and it is not released. It is free when the host says that nothing came of it.
func TestS78_APortIsHeldWhileItsHostChangesItsController(t *testing.T) {
	c, other, first, second, port := starting(t)
	first.goesTo(other)
	c.startFails("esx1") // what the first one knows is over
	const starts = "is being connected on host esx1"
	if a := second.claims(); !a.GetConflict() || !strings.Contains(a.GetRefused(), starts) || c.boundTo() != "esx1" {
		t.Errorf("another host claims the port: %v; it is bound to %q", a, c.boundTo())
	}
	for _, one := range []*controller{c, other} {
		err := release(one, &controllerv1.ReleaseStaticPortRequest{Port: port, Force: true})
		if err == nil || !strings.Contains(err.Error(), starts) {
			t.Errorf("%s releases the port: %v", one.id, err)
		}
	}
	other.starts("esx1", time.Hour) // that does not end by itself
	first.client.Ended(vmOf, "net0")
	id := other.idOf("esx1")
	other.await("the host has said what came of it", func() bool {
		return len(other.fleet.adapters.Starts.Here(id)) == 0
	})
	if a := second.claims(); a.GetRefused() != "" || a.GetPort().GetPort() != port || c.boundTo() != "esx2" {
		t.Errorf("the guest did not start: %v, bound to %q", a, c.boundTo())
	}
}

// A release that a host made by its controller before is late when the host has claimed the port again by the next one:
// the port stays bound, and the answer says why. One that comes after that claim is carried out.
func TestS79_AReleaseByTheControllerBeforeLeavesWhatWasClaimedSince(t *testing.T) {
	c, other, first, _, port := starting(t)
	c.fleet.mu.Lock()
	h, before := c.fleet.names["esx1"], c.fleet.names["esx1"].conn
	c.fleet.mu.Unlock()
	first.goesTo(other)
	if a := first.claims(); a.GetRefused() != "" || a.GetPort().GetPort() != port {
		t.Fatal(a)
	}
	q := &controllerv1.PortClaim{Number: 2, Switch: "dvs", PortGroup: "web", Vm: strings.ToUpper(vmOf),
		Adapter: "net0", Port: port, Release: true}
	a := portsIn(c.fleet).Claim(t.Context(), h.id, before.Conn, q)
	if !strings.Contains(a.GetRefused(), "stays bound: it was claimed again meanwhile") || c.boundTo() != "esx1" {
		t.Errorf("a late release: %v; the port is bound to %q", a, c.boundTo())
	}
	q.Vm = vmOf
	if a := first.asks(q); a.GetRefused() != "" || other.boundTo() != "" {
		t.Errorf("a release in time: %v; the port is bound to %q", a, other.boundTo())
	}
}
