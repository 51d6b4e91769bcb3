package compile

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func TestLimitsOfTheConfigurationAreThoseOfTheTables(t *testing.T) {
	if spec.MaxSwitches != abi.MaxSwitches || spec.MaxMembers != abi.MaxPorts-1 {
		t.Errorf("configuration: %d switches, %d members; tables: %d and %d", spec.MaxSwitches, spec.MaxMembers,
			abi.MaxSwitches, abi.MaxPorts-1)
	}
}

func switches(prefix string, n int) *plan.Plan {
	p := &plan.Plan{}
	for i := range n {
		p.Switches = append(p.Switches, &plan.Switch{Name: fmt.Sprint(prefix, i)})
	}
	return p
}

// Frames still pass through the old switches while the new ones are written, so both need a slot.
func TestAssign_WhatLeavesHoldsItsPlaceUntilReleased(t *testing.T) {
	s := NewSlots()
	if _, err := s.Assign(switches("old", 20)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Assign(switches("new", 13))
	if err == nil || !strings.Contains(err.Error(), "20 that this change removes") {
		t.Errorf("got %v", err)
	}
	if len(s.Switches) != 20 {
		t.Errorf("a failed assignment left %d switches", len(s.Switches))
	}
	a, err := s.Assign(switches("new", 12))
	if err != nil {
		t.Fatal(err)
	}
	s.Release(a)
	if len(s.Switches) != 12 {
		t.Errorf("%d switches after the release", len(s.Switches))
	}
}

// onePort is a plan with a port of that name.
func onePort(name string) *plan.Plan {
	return &plan.Plan{Switches: []*plan.Switch{{Name: "lab",
		Ports: []*plan.Port{{ID: plan.PortID{Switch: "lab", Name: name}}}}}}
}

// What an earlier port at a slot left in another table has another epoch than the port that is there now.
func TestAssign_EachPortAtASlotHasAnEpochOfItsOwn(t *testing.T) {
	s := NewSlots()
	a, err := s.Assign(onePort("a"))
	if err != nil {
		t.Fatal(err)
	}
	slot := a.NewPorts[plan.PortID{Switch: "lab", Name: "a"}]
	if _, err := s.Assign(onePort("a")); err != nil || s.Epochs[slot] != 1 {
		t.Errorf("a port that stays: epoch %d of its slot, %v; want 1", s.Epochs[slot], err)
	}
	if a, err = s.Assign(&plan.Plan{}); err != nil {
		t.Fatal(err)
	}
	s.Release(a)
	if a, err = s.Assign(onePort("b")); err != nil || a.NewPorts[plan.PortID{Switch: "lab", Name: "b"}] != slot {
		t.Fatalf("%v, %v: want slot %d", a, err, slot)
	}
	if s.Epochs[slot] != 2 {
		t.Errorf("the next port at the slot has epoch %d, want 2", s.Epochs[slot])
	}
	if s.Undo(a); s.Epochs[slot] != 1 {
		t.Errorf("a port that did not come leaves epoch %d, want 1", s.Epochs[slot])
	}
}
