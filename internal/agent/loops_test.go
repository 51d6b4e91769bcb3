package agent

import (
	"strings"
	"testing"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// TestS110_OnlyTheChangeThatClosesALoopIsRefused joins the devices of two ports: the change that would connect the
// second of them is refused, and another one is not while both are connected and neither is blocked yet.
func TestS110_OnlyTheChangeThatClosesALoopIsRefused(t *testing.T) {
	r := newRig(t, strings.Replace(base, "vlan: {access: 100}", "vlan: {access: 100}, security: {forgedTransmits: "+
		"accept}", 1))
	r.looping.begin(nil, nil)
	x, y := r.dev.veth("x", "02:00:00:00:00:21"), r.dev.veth("y", "02:00:00:00:00:22")
	join := func() {
		x.Peer.Index, x.Peer.Elsewhere = y.Index, false
		y.Peer.Index, y.Peer.Elsewhere = x.Index, false
	}
	apart := [2]hostdev.Peer{x.Peer, y.Peer}
	join()
	if err := r.connect(spec.Port{Name: "x", PortGroup: "web", Device: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := r.connect(spec.Port{Name: "y", PortGroup: "web", Device: "y"}); err == nil ||
		!strings.Contains(err.Error(), "would close a loop") {
		t.Errorf("the port that closes the loop: %v", err)
	}
	x.Peer, y.Peer = apart[0], apart[1]
	if err := r.connect(spec.Port{Name: "y", PortGroup: "web", Device: "y"}); err != nil {
		t.Fatal(err)
	}
	join() // and the agent has not looked yet
	if p := problem.First(r.looping.problem(id("x")), r.looping.problem(id("y"))); !p.None() {
		t.Fatalf("blocked already: %s", p)
	}
	if err := r.block("a", true); err != nil {
		t.Errorf("a change that has nothing to do with the loop: %v", err)
	}
}
