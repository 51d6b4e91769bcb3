package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// OverlaySegment is an overlay segment of a switch, as the program knows it: the ports of a VNI that are in one VLAN
// inside.
type OverlaySegment struct {
	Switch string
	VNI    uint32
	VLAN   uint16 // 0 = untagged
}

// overlaySpace follows a switch's name where the overlay segments of the switch are meant. No switch has a "/" in its
// name.
const overlaySpace = "/overlay"

// spaces returns the names under which a switch has ids in the program: its own, and one for its overlay segments. They
// are a switch of their own to the program, whose only uplink is the tunnel and whose VLANs are the segments' numbers.
func spaces(sw *plan.Switch) []string {
	if sw.Tunnel == nil {
		return []string{sw.Name}
	}
	return []string{sw.Name, sw.Name + overlaySpace}
}

// SpaceOf returns the switch of a name under which it has an id, and whether that is for its overlay segments.
func SpaceOf(name string) (sw string, overlay bool) { return strings.CutSuffix(name, overlaySpace) }

// SegmentOf returns the overlay segment of a port, false for a port of a VLAN.
func SegmentOf(p *plan.Port) (OverlaySegment, bool) {
	s := OverlaySegment{Switch: p.ID.Switch, VNI: p.VNI}
	if p.Policy != nil && p.Policy.VLAN.V.Mode == plan.VLANAccess {
		s.VLAN = p.Policy.VLAN.V.ID
	}
	return s, p.VNI != 0
}

// OverlaySegments returns the overlay segments in which ports of a switch are.
func OverlaySegments(sw *plan.Switch) map[OverlaySegment]bool {
	if sw.Tunnel == nil {
		return nil
	}
	all := map[OverlaySegment]bool{}
	for _, p := range sw.Ports {
		if s, ok := SegmentOf(p); ok {
			all[s] = true
		}
	}
	return all
}

// assignSegments gives each overlay segment of a plan a number, which is its VLAN in the program. A segment keeps its
// number while it is in the plan.
func (s *Slots) assignSegments(p *plan.Plan, a *Assignment) error {
	for _, sw := range p.Switches {
		if err := s.assignSegmentsOf(sw, a); err != nil {
			return err
		}
	}
	for seg, n := range s.Segments {
		sw := p.Switch(seg.Switch)
		if _, fresh := a.NewSegments[seg]; !fresh && (sw == nil || !OverlaySegments(sw)[seg]) {
			a.GoneSegments[seg] = n
		}
	}
	return nil
}

func (s *Slots) assignSegmentsOf(sw *plan.Switch, a *Assignment) error {
	used := map[uint16]bool{}
	for seg, n := range s.Segments {
		if seg.Switch == sw.Name {
			used[n] = true
		}
	}
	next := uint16(1)
	for _, seg := range slices.SortedFunc(maps.Keys(OverlaySegments(sw)), OverlaySegment.compare) {
		if _, ok := s.Segments[seg]; ok {
			continue
		}
		for used[next] {
			next++
		}
		if next >= mostSegments {
			return fmt.Errorf("switch %s: a switch can have at most %d overlay segments on a host, each VLAN inside a "+
				"VNI being one", sw.Name, mostSegments-1)
		}
		used[next], a.NewSegments[seg] = true, next
	}
	return nil
}

// mostSegments is the first number that no segment can have: 4,095 is no VLAN.
const mostSegments = abi.VIDMask

func (s OverlaySegment) compare(o OverlaySegment) int {
	if s.VNI != o.VNI {
		return int(s.VNI) - int(o.VNI)
	}
	return int(s.VLAN) - int(o.VLAN)
}

// Decode returns a function that reads a segment of the program's tables: the VNI, 0 for none, the VLAN (inside it) and
// whether that is an 802.1ad one.
func (s *Slots) Decode() func(segment uint32) (vni uint32, vlan uint16, ad bool) {
	overlays := make(map[uint32]OverlaySegment, len(s.Segments))
	for seg := range s.Segments {
		if n, ok := s.Encode(seg.Switch, seg.VNI, seg.VLAN, false); ok {
			overlays[n] = seg
		}
	}
	return func(segment uint32) (uint32, uint16, bool) {
		if seg, ok := overlays[segment]; ok {
			return seg.VNI, seg.VLAN, false
		}
		return 0, uint16(segment & abi.VIDMask), segment&abi.SegmentAD != 0
	}
}

// Encode returns the number of a segment in the program's tables; false if the switch or segment has none.
func (s *Slots) Encode(sw string, vni uint32, vlan uint16, ad bool) (segment uint32, ok bool) {
	if vni != 0 {
		vlan, ok = s.Segments[OverlaySegment{Switch: sw, VNI: vni, VLAN: vlan}]
		id, there := s.Switches[sw+overlaySpace]
		return (uint32(id)+1)<<abi.SegmentSwitchShift | uint32(vlan), ok && there
	}
	id, ok := s.Switches[sw]
	segment = (uint32(id)+1)<<abi.SegmentSwitchShift | uint32(vlan)
	if ad {
		segment |= abi.SegmentAD
	}
	return segment, ok
}

// part is what the program takes for a switch: the VLANs of a switch, or its overlay segments.
type part struct {
	*plan.Switch
	id  uint8
	own []OwnMAC // of the ports
}

// parts divides a switch for the program.
func (c *compiler) parts(sw *plan.Switch, own []OwnMAC) ([]part, error) {
	vlans := part{sw, c.slots.Switches[sw.Name], own}
	if sw.Tunnel == nil && !slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.VNI != 0 }) {
		return []part{vlans}, nil
	}
	if sw.Tunnel == nil {
		return nil, fmt.Errorf("a port group is an overlay segment, and the switch has no tunnel")
	}
	rest, over := *sw, *sw
	rest.Ports, over.Ports, over.LAGs = nil, nil, nil
	vlans = part{Switch: &rest, id: vlans.id}
	overlay := part{Switch: &over, id: c.slots.Switches[sw.Name+overlaySpace]}
	numbers := plan.VLANSet{}
	policies := map[policyIn]*plan.Effective{}
	for i, p := range sw.Ports {
		seg, ok := SegmentOf(p)
		if !ok {
			rest.Ports, vlans.own = append(rest.Ports, p), append(vlans.own, own[i])
			continue
		}
		if p.Policy.VLAN.V.Mode == plan.VLANTrunk {
			return nil, fmt.Errorf("port %s: a trunk inside an overlay segment is not carried: use one port for each "+
				"VLAN inside, or none", p.ID.Name)
		}
		number := c.slots.Segments[seg]
		numbers.AddRange(number, number)
		key := policyIn{p.Policy, number}
		if policies[key] == nil {
			policies[key] = insideOverlay(p.Policy, number)
		}
		inside := *p
		inside.Policy = policies[key]
		over.Ports, overlay.own = append(over.Ports, &inside), append(overlay.own, own[i])
	}
	over.Uplinks = []*plan.Uplink{{ID: sw.Tunnel.ID, Number: sw.Tunnel.Number, Device: sw.Tunnel.Device,
		VLANs: numbers, Monitoring: sw.Tunnel.Monitoring}}
	return []part{vlans, overlay}, nil
}

type policyIn struct {
	policy *plan.Effective
	number uint16
}

// insideOverlay returns the policy as the program carries it out: the segment's number for the VLAN, and the tunnel for
// the team.
func insideOverlay(e *plan.Effective, number uint16) *plan.Effective {
	inside := *e
	inside.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: number}
	inside.Teaming.Policy.V = spec.ExplicitOrder
	inside.Teaming.Active.V, inside.Teaming.Standby.V = []string{spec.TunnelName}, nil
	return &inside
}
