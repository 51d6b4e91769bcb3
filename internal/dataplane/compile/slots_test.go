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
