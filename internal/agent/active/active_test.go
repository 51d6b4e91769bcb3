package active

import (
	"testing"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// What a reader has is as it was, whatever is published afterwards, and whatever is added to the draft that it was.
func TestAValueIsNeverChanged(t *testing.T) {
	var c Current
	read := c.Reader()
	if v := read.Active(); v.Plan != nil || v.Applied != nil || v.Generation != 0 {
		t.Errorf("before anything is active: %+v", v)
	}
	a, b := plan.PortID{Switch: "lab", Name: "a"}, plan.PortID{Switch: "lab", Name: "b"}
	first := NewDraft(&spec.Config{}, &plan.Plan{})
	first.Report(a, problem.Of(problem.NoDevice))
	c.Settled(first)
	was := read.Active()
	first.Report(b, problem.Of(problem.NoDevice))
	c.Settled(NewDraft(&spec.Config{}, &plan.Plan{}))
	if len(was.Problems) != 1 || was.Problems[a].None() {
		t.Errorf("what was read became %+v", was.Problems)
	}
	if now := read.Active(); now.Generation <= was.Generation || len(now.Problems) != 0 || now.Plan == was.Plan {
		t.Errorf("after the next: %+v", now)
	}
}

// What is active in the kernel and what the configuration wants are published apart: the first stays while the second
// cannot be activated.
func TestWhatTheKernelHasStays(t *testing.T) {
	var c Current
	has := &binding.Desired{Plan: &plan.Plan{Switches: []*plan.Switch{{Name: "lab",
		Uplinks: []*plan.Uplink{{ID: plan.PortID{Switch: "lab", Name: "u"}}},
		Ports:   []*plan.Port{{ID: plan.PortID{Switch: "lab", Name: "a"}}}}}}}
	c.Activated(has, dataplane.Instant{Before: 1, After: 2})
	c.Settled(NewDraft(&spec.Config{}, &plan.Plan{}))
	v := c.Active()
	if v.Applied != has || v.Flip.After != 2 || v.Plan == has.Plan {
		t.Errorf("%+v", v)
	}
	if m := v.Members(); len(m) != 2 || m[0].Name != "u" || m[1].Name != "a" {
		t.Errorf("members: %v", m)
	}
}
