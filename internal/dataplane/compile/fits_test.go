package compile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// the host behind the uplink
func trunks(n int, set func(i int) plan.VLANSet) *plan.Plan {
	sw := &plan.Switch{Name: "lab", MTU: 1500}
	for i := range n {
		p := &plan.Port{ID: plan.PortID{Switch: "lab", Name: fmt.Sprint("vm", i)}, Number: uint32(i + 1),
			Policy: &plan.Effective{}}
		p.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANTrunk, Set: set(i)}
		p.Policy.Teaming.Policy.V = spec.OriginatingPort
		sw.Ports = append(sw.Ports, p)
	}
	return &plan.Plan{Switches: []*plan.Switch{sw}}
}

// Ports with a VLAN set each fit: as many ports as there are slots.
func TestEveryPortMayHaveItsOwnVLANSet(t *testing.T) {
	own := func(i int) (s plan.VLANSet) {
		s.AddRange(uint16(1+2*i), uint16(2+2*i))
		return s
	}
	if err := Fits(trunks(2047, own)); err != nil {
		t.Error(err)
	}
}

// Nested ranges give every VLAN other receivers. If there are more memberships than the tables can hold, the plan is
// refused before any device exists, and the error says what to do.
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

// The rough bound never accepts a plan that does not fit, right up to the capacity of each table.
func TestTheRoughBoundIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 2000).Draw(t, "ports")
		access := rapid.IntRange(1, 4094).Draw(t, "access VLANs")
		kinds := rapid.IntRange(0, 7).Draw(t, "trunks")
		share := rapid.IntRange(0, 4).Draw(t, "of five ports are trunks")
		seed := rapid.Uint64().Draw(t, "seed")
		sets := make([]plan.VLANSet, kinds)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for i := range sets {
			for range 1 + rnd.IntN(300) {
				lo := uint16(1 + rnd.IntN(4000))
				sets[i].AddRange(lo, lo+uint16(rnd.IntN(40)))
			}
		}
		p := trunks(n, func(i int) plan.VLANSet { return plan.VLANSet{} })
		for i, port := range p.Switches[0].Ports {
			port.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: uint16(1 + (i*7)%access)}
			if kinds > 0 && i%5 < share {
				port.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANTrunk, Set: sets[i%kinds], AD: i%11 == 0}
			}
		}
		if err := fits(p); surelyFits(p) && err != nil {
			t.Fatalf("promised, and %v", err)
		}
	})
}

// For typical hosts the bound alone decides.
func TestTheRoughBoundIsOfUse(t *testing.T) {
	p := trunks(1000, func(int) plan.VLANSet { return plan.AllVLANs() })
	for i, port := range p.Switches[0].Ports[10:] {
		port.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: uint16(100 + i%500)}
	}
	p.Switches[0].Uplinks = []*plan.Uplink{{VLANs: plan.AllVLANs()}, {VLANs: plan.AllVLANs()}}
	if !surelyFits(p) {
		t.Error("not for 1,000 ports in 500 VLANs, ten of them trunks")
	}
}
