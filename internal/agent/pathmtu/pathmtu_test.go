package pathmtu

import (
	"errors"
	"maps"
	"net/netip"
	"testing"

	"heddle/internal/agent/active"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// The kernel is asked about the ways that the tunnels have, beside the loop; what it says is wanted, and an error
// leaves what was known.
func TestWhatTheKernelSaysIsWanted(t *testing.T) {
	own, far := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var current active.Current
	answers, posted := make(chan error, 1), make(chan func())
	var asked []hostdev.Way
	var complaints []string
	asks := 0
	p := New(Host{Reader: current.Reader(), Ask: func() { asks++ },
		Post:     func(f func()) bool { posted <- f; return true },
		Complain: func(what string, _ error) { complaints = append(complaints, what) },
		Read: func(ways []hostdev.Way) (map[netip.Addr]int, error) {
			asked = ways
			return map[netip.Addr]int{far: 1400}, <-answers
		}})
	p.Tick()
	if p.busy {
		t.Fatal("asked before anything is active")
	}
	id := plan.PortID{Switch: "lab", Name: "tunnel"}
	current.Activated(&binding.Desired{Plan: &plan.Plan{Switches: []*plan.Switch{{Name: "lab",
		Tunnel: &plan.Tunnel{ID: id}}}}, Facts: plan.Facts{id: {Endpoints: []netip.Addr{own}}},
		Reach: map[string]overlay.Reach{"lab": {Endpoints: []overlay.Endpoint{{Address: far}}}}}, dataplane.Instant{})
	answers <- nil
	p.Tick()
	(<-posted)()
	if len(asked) != 1 || asked[0] != (hostdev.Way{Own: own, Far: far}) || asks != 1 {
		t.Errorf("asked about %v, %d times the reconcile", asked, asks)
	}
	want := active.Want{Lengths: map[netip.Addr]int{far: 1400}}
	if got := p.Want(current.Active()); !got.Equal(want) {
		t.Errorf("wanted: %v", got)
	}
	p.take(nil, errors.New("no route"))
	if !maps.Equal(p.Want(current.Active()).Lengths, want.Lengths) || len(complaints) != 1 {
		t.Errorf("after an error: %v, %q", p.known, complaints)
	}
}
