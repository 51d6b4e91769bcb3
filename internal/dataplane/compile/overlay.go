package compile

import (
	"fmt"
	"iter"
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

// IsTrunk reports whether a port is a trunk inside a VNI: the programs of its device turn its owner's tags into the
// segments' numbers and back.
func IsTrunk(p *plan.Port) bool {
	return p.VNI != 0 && p.Policy != nil && p.Policy.VLAN.V.Mode == plan.VLANTrunk
}

// SegmentIn returns the overlay segment of a port's frames; false for a port of a VLAN. The VLAN of a trunk's frames is
// that of their tag, 0 without one.
func SegmentIn(p *plan.Port, tag uint16) (OverlaySegment, bool) {
	s := OverlaySegment{Switch: p.ID.Switch, VNI: p.VNI}
	switch {
	case IsTrunk(p):
		s.VLAN = tag
	case p.Policy != nil && p.Policy.VLAN.V.Mode == plan.VLANAccess:
		s.VLAN = p.Policy.VLAN.V.ID
	}
	return s, p.VNI != 0
}

// segmentsOf returns the overlay segments of a port: one, or one for each VLAN of a trunk.
func segmentsOf(p *plan.Port) iter.Seq[OverlaySegment] {
	return func(yield func(OverlaySegment) bool) {
		if p.VNI == 0 {
			return
		}
		if !IsTrunk(p) {
			s, _ := SegmentIn(p, 0)
			yield(s)
			return
		}
		for v := range p.Policy.VLAN.V.Set.All() {
			if s, _ := SegmentIn(p, v); !yield(s) {
				return
			}
		}
	}
}

// OverlaySegments returns the overlay segments in which ports of a switch are.
func OverlaySegments(sw *plan.Switch) map[OverlaySegment]bool {
	if sw.Tunnel == nil {
		return nil
	}
	all := map[OverlaySegment]bool{}
	done := map[policyIn]bool{} // ports of one port group are in the same segments
	for _, p := range sw.Ports {
		if at := (policyIn{p.Policy, p.VNI}); done[at] {
			continue
		} else {
			done[at] = true
		}
		for s := range segmentsOf(p) {
			all[s] = true
		}
	}
	return all
}

// assignSegments gives each overlay segment of a plan a number, which is its VLAN in the program. A segment keeps its
// number while it is in the plan.
func (s *Slots) assignSegments(p *plan.Plan, a *Assignment) error {
	all := map[OverlaySegment]bool{}
	for _, sw := range p.Switches {
		has := OverlaySegments(sw)
		if err := s.assignSegmentsOf(sw, has, a); err != nil {
			return err
		}
		maps.Copy(all, has)
	}
	for seg, n := range s.Segments {
		if !all[seg] {
			a.GoneSegments[seg] = n
		}
	}
	return nil
}

func (s *Slots) assignSegmentsOf(sw *plan.Switch, has map[OverlaySegment]bool, a *Assignment) error {
	used, leaving := map[uint16]bool{}, 0
	for seg, n := range s.Segments {
		if seg.Switch != sw.Name {
			continue
		}
		used[n] = true
		if !has[seg] {
			leaving++
		}
	}
	next := uint16(1)
	for _, seg := range slices.SortedFunc(maps.Keys(has), OverlaySegment.compare) {
		if _, ok := s.Segments[seg]; ok {
			continue
		}
		for used[next] {
			next++
		}
		if next >= mostSegments {
			return fmt.Errorf("switch %s: a switch can have at most %d overlay segments on a host, each VLAN inside a "+
				"VNI being one; its ports are in %d, and %d that this change removes are there until it is active: "+
				"list in trunks the VLANs that guests use", sw.Name, mostSegments-1, len(has), leaving)
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
		if p.VNI == 0 {
			rest.Ports, vlans.own = append(rest.Ports, p), append(vlans.own, own[i])
			continue
		}
		if p.Policy.VLAN.V.AD {
			return nil, fmt.Errorf("port %s: a trunk of 802.1ad inside an overlay segment is not carried: leave out "+
				"outer", p.ID.Name)
		}
		key := policyIn{p.Policy, p.VNI}
		if policies[key] == nil {
			policies[key] = c.insideOverlay(p, &numbers)
		}
		inside := *p
		inside.Policy = policies[key]
		over.Ports, overlay.own = append(over.Ports, &inside), append(overlay.own, own[i])
	}
	over.Uplinks = []*plan.Uplink{{ID: sw.Tunnel.ID, Number: sw.Tunnel.Number, Device: sw.Tunnel.Device,
		VLANs: numbers, Monitoring: sw.Tunnel.Monitoring}}
	return []part{vlans, overlay}, nil
}

// policyIn is what ports of one port group have in common: their policy and their VNI.
type policyIn struct {
	policy *plan.Effective
	vni    uint32
}

// insideOverlay returns the policy of a port as the program carries it out: the numbers of its segments for the VLANs,
// and the tunnel for the team. It adds the numbers to those of the tunnel.
func (c *compiler) insideOverlay(p *plan.Port, numbers *plan.VLANSet) *plan.Effective {
	inside := *p.Policy
	var own plan.VLANSet
	var last uint16
	for seg := range segmentsOf(p) {
		last = c.slots.Segments[seg]
		own.AddRange(last, last)
		numbers.AddRange(last, last)
	}
	inside.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: last}
	if IsTrunk(p) {
		inside.VLAN.V = plan.VLAN{Mode: plan.VLANTrunk, Set: own}
	}
	inside.Teaming.Policy.V = spec.ExplicitOrder
	inside.Teaming.Active.V, inside.Teaming.Standby.V = []string{spec.TunnelName}, nil
	return &inside
}

// compileOverlay says in which VNI the port is, and by which tunnel its frames leave.
func (c *compiler) compileOverlay(rec *abi.Port, sw *plan.Switch, p *plan.Port) {
	if p.VNI != 0 && sw.Tunnel != nil {
		rec.Vni, rec.Tunnel = p.VNI, uint16(c.slots.Ports[sw.Tunnel.ID])
	}
}
