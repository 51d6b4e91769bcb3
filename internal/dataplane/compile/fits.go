package compile

import (
	"slices"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/plan"
)

// Fits returns an error if the tables are too small for the plan with all its ports and uplinks connected. It is pure.
// If the rough bound suffices, it takes some 0.1 ms for 1,000 ports, otherwise milliseconds.
func Fits(p *plan.Plan) error {
	if surelyFits(p) {
		return nil
	}
	return fits(p)
}

func fits(p *plan.Plan) error {
	d := binding.Desired{Plan: p, Facts: plan.Facts{}, Attachments: map[plan.PortID]binding.Attachment{}}
	for _, sw := range p.Switches {
		for id := range MembersOf(sw) {
			d.Facts[id] = plan.Fact{Up: true, MTU: sw.MTU}
			d.Attachments[id] = binding.Attachment{Ifindex: 1}
		}
	}
	s := NewSlots()
	if _, err := s.Assign(p); err != nil {
		return err
	}
	_, err := Tables(d, s, 1000)
	return err
}

// mostTrunks is the largest number of different trunks of a switch with which surelyFits can decide: each doubles the
// number of possible memberships.
const mostTrunks = 6

// surelyFits checks upper bounds of what runs out first. It never returns true if compiling would fail. There is one
// VLAN set, team and slot for every member of a plan; there are as many groups and members as there are different
// memberships of segments. The receivers of a segment are the access ports of its VLAN (or none), and those of any of
// the trunks.
func surelyFits(p *plan.Plan) bool {
	members, groups, chunks, guards := 0, 1, 0, 0
	for _, sw := range p.Switches {
		if sw.Tunnel != nil || slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.VNI != 0 }) {
			return false
		}
		members += len(sw.Uplinks) + len(sw.Ports)
		guards += guarded(sw)
		m := membershipsOf(sw)
		if len(m.trunks) > mostTrunks {
			return false
		}
		subsets := 1 << len(m.trunks)
		inTrunks := 0
		for _, n := range m.trunks {
			inTrunks += n
		}
		m.access[notAccess] = 0
		for _, n := range m.access {
			groups += subsets
			chunks += subsets * 3 * ((n + inTrunks + abi.Chunk - 1) / abi.Chunk) // all, unknown, promiscuous
		}
	}
	return len(p.Switches) <= abi.MaxSwitches && members < abi.MaxPorts && groups <= abi.MaxGroups &&
		chunks <= abi.MaxMemberChunks && guards <= abi.MaxGuardAddresses
}

// notAccess stands for the segments that no access port is in.
const notAccess = abi.SegmentsPerSwitch

// memberships says how many ports are in each access segment, and how many share each trunk.
type memberships struct {
	access map[uint16]int
	trunks map[trunkKind]int
}

type trunkKind struct {
	set      plan.VLANSet
	ad, both bool
}

func membershipsOf(sw *plan.Switch) memberships {
	m := memberships{map[uint16]int{}, map[trunkKind]int{}}
	for _, u := range sw.Uplinks { // the host behind it
		m.trunks[trunkKind{set: u.VLANs, both: true}]++
	}
	for _, p := range sw.Ports {
		switch v := &p.Policy.VLAN.V; v.Mode {
		case plan.VLANNone:
			m.access[0]++
		case plan.VLANAccess:
			m.access[v.ID]++
		case plan.VLANTrunk:
			m.trunks[trunkKind{set: v.Set, ad: v.AD}]++
		}
	}
	return m
}
