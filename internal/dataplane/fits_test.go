package dataplane

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// trunks is a switch of n trunk ports; set gives each its VLANs.
func trunks(n int, set func(i int) plan.VLANSet) *plan.Plan {
	sw := &plan.Switch{Name: "lab", MTU: 1500}
	for i := range n {
		p := &plan.Port{ID: plan.PortID{Switch: "lab", Name: fmt.Sprint("vm", i)}, Number: uint32(i + 1)}
		p.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANTrunk, Set: set(i)}
		p.Policy.Teaming.Policy.V = spec.OriginatingPort
		sw.Ports = append(sw.Ports, p)
	}
	return &plan.Plan{Switches: []*plan.Switch{sw}}
}

// Ports with a VLAN set each fit, as many as there are slots.
func TestEveryPortMayHaveItsOwnVLANSet(t *testing.T) {
	own := func(i int) (s plan.VLANSet) {
		s.AddRange(uint16(1+2*i), uint16(2+2*i))
		return s
	}
	if err := Fits(trunks(2047, own)); err != nil {
		t.Error(err)
	}
}

// Nested ranges give every VLAN other receivers: more memberships than there is room for are refused before any device is
// there, with what to do.
func TestTooManyMembershipsAreRefusedAtOnce(t *testing.T) {
	nested := func(i int) (s plan.VLANSet) {
		s.AddRange(1, uint16(1+2*i))
		return s
	}
	err := Fits(trunks(2000, nested))
	if err == nil || !strings.Contains(err.Error(), "equal VLAN ranges") {
		t.Errorf("got %v", err)
	}
}
