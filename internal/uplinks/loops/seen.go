package loops

import (
	"slices"

	"heddle/internal/plan"
)

// Joint is two ports or uplinks whose devices are the two ends of one veth pair.
type Joint struct{ A, B plan.PortID }

// tag is the tag of a frame between two devices.
type tag struct {
	vlan uint16
	ad   bool
}

// side is one end of a joint in the plan.
type side struct {
	end    End
	forged bool // accepts frames from any source, so that forwarded frames enter
	vlan   plan.VLAN
	uplink bool
}

// Ways returns the paths that joints open between segments of a plan, in both directions if both ends accept frames of
// other sources. Of VLANs that all joints treat alike only one is returned. Joints of ports that are not in the plan,
// or blocked, open no path.
func Ways(p *plan.Plan, joints []Joint) []Way {
	pairs := make([][2]side, 0, len(joints))
	sides := sidesOf(p)
	for _, j := range joints {
		a, okA := sides[j.A]
		b, okB := sides[j.B]
		if okA && okB && j.A != j.B {
			pairs = append(pairs, [2]side{a, b})
		}
	}
	var ways []Way
	for _, t := range tags(pairs) {
		for _, pair := range pairs {
			a, okA := pair[0].at(t)
			b, okB := pair[1].at(t)
			if okA && okB && pair[1].forged {
				ways = append(ways, Way{a, b})
			}
			if okA && okB && pair[0].forged {
				ways = append(ways, Way{b, a})
			}
		}
	}
	return ways
}

func sidesOf(p *plan.Plan) map[plan.PortID]side {
	sides := make(map[plan.PortID]side, p.Members())
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			if !u.Blocked {
				sides[u.ID] = side{End{ID: u.ID, Number: u.Number, Uplink: true}, true,
					plan.VLAN{Mode: plan.VLANTrunk, Set: u.VLANs}, true}
			}
		}
		for _, port := range sw.Ports {
			if pol := port.Policy; !pol.Blocked.V {
				sides[port.ID] = side{end: EndOf(port), forged: pol.ForgedTransmits.V, vlan: pol.VLAN.V}
			}
		}
	}
	return sides
}

// EndOf returns a port's end without its segment.
func EndOf(p *plan.Port) End {
	return End{ID: p.ID, Number: p.Number, Free: !p.Policy.LoopDetection.V}
}

// at returns the end for frames with that tag, false if the port accepts no such frames.
func (s side) at(t tag) (End, bool) {
	e := s.end
	seg, ok := SegmentOf(s.end.ID.Switch, &s.vlan, s.uplink, t.vlan, t.ad)
	e.Segment = seg
	return e, ok
}

// SegmentOf returns the segment of frames that a port or uplink accepts with that tag, VLAN 0 for none; false if it
// accepts no such frames.
func SegmentOf(sw string, v *plan.VLAN, uplink bool, vlan uint16, ad bool) (Segment, bool) {
	ad = ad && vlan != 0
	switch v.Mode {
	case plan.VLANAccess:
		return Segment{Switch: sw, VLAN: v.ID}, vlan == 0
	case plan.VLANTrunk:
		return Segment{sw, vlan, ad}, v.Set.Has(vlan) && (vlan == 0 || uplink || ad == v.AD)
	}
	return Segment{Switch: sw}, vlan == 0
}

// tags returns the tags to examine. Of the VLANs that the same joints carry, and that are no port's access VLAN, only
// the first is returned.
func tags(pairs [][2]side) []tag {
	list := []tag{{}}
	special := map[uint16]bool{}
	var trunks [][2]side
	for _, p := range pairs {
		for _, s := range p {
			if s.vlan.Mode == plan.VLANAccess {
				special[s.vlan.ID] = true
			}
		}
		if p[0].vlan.Mode == plan.VLANTrunk && p[1].vlan.Mode == plan.VLANTrunk {
			trunks = append(trunks, p)
		}
	}
	if len(trunks) == 0 {
		return list
	}
	known := map[string]bool{}
	for _, ad := range []bool{false, true} {
		for v := uint16(1); v < 4095; v++ {
			alike := make([]byte, 0, len(trunks)+1)
			for _, p := range trunks {
				_, a := p[0].at(tag{v, ad})
				_, b := p[1].at(tag{v, ad})
				alike = append(alike, map[bool]byte{true: 1}[a && b])
			}
			if !slices.Contains(alike, 1) {
				continue
			}
			if key := string(append(alike, map[bool]byte{true: 1}[ad])); special[v] && !ad || !known[key] {
				known[key] = true
				list = append(list, tag{v, ad})
			}
		}
	}
	return list
}
