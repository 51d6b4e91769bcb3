package compile

import (
	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// compileMonitoring records where the port's or uplink's frames are metered, and how many of them.
func compileMonitoring(rec *abi.Port, sw *plan.Switch, m plan.Monitoring) {
	if m.Ingress() {
		rec.Flags |= abi.PortMeterIngress
	}
	if m.Egress() {
		rec.Flags |= abi.PortMeterEgress
	}
	if m.IPFIX.V {
		rec.Sampling = uint16(sw.IPFIX.SamplingRate)
	}
}

// Room is the quota of flows that may begin between two drains: Own for each single port, Shared for all ports of the
// switch beyond that.
type Room struct{ Own, Shared uint32 }

// RoomOf divides a switch's flows: one half evenly among its ports and uplinks, so that no port can keep another from
// being metered; the other half for the ports that need more, first come, first served.
func RoomOf(sw *plan.Switch) Room {
	if !sw.Metered() {
		return Room{}
	}
	members := len(sw.Ports) + len(sw.Uplinks)
	if sw.Tunnel != nil {
		members++
	}
	own := max(sw.IPFIX.MaxFlows/2/members, 1)
	return Room{Own: uint32(own), Shared: uint32(max(sw.IPFIX.MaxFlows-own*members, 0))}
}

// FlowsOf returns how many flows all switches of a plan may begin between two drains.
func FlowsOf(p *plan.Plan) (n uint32) {
	for _, sw := range p.Switches {
		if sw.Metered() {
			n += uint32(sw.IPFIX.MaxFlows)
		}
	}
	return n
}

// Points returns the ports and uplinks of a plan as observation points of flows.
func Points(d binding.Desired, s *Slots) map[plan.PortID]flow.Point {
	points := make(map[plan.PortID]flow.Point, len(d.Facts))
	for _, sw := range d.Plan.Switches {
		macs := EffectiveMACs(sw, d.Facts)
		for _, u := range sw.Uplinks {
			points[u.ID] = flow.Point{ID: u.ID, Uplink: true, Number: u.Number, Device: u.Device,
				Ifindex: d.Attachments[u.ID].Ifindex, MAC: d.Facts[u.ID].DeviceMAC}
		}
		overlay, inside := s.overlayOf(sw), map[policyIn]*flow.Overlay{}
		if t := sw.Tunnel; t != nil {
			points[t.ID] = flow.Point{ID: t.ID, Uplink: true, Number: t.Number, Device: t.Device,
				Ifindex: d.Attachments[t.ID].Ifindex, Overlay: overlay}
		}
		for i, p := range sw.Ports {
			mac := macs[i].MAC
			if mac.IsZero() {
				mac = p.InitialMAC
			}
			point := flow.Point{ID: p.ID, Number: p.Number, PortGroup: p.PortGroup, Device: p.Device,
				Ifindex: d.Attachments[p.ID].Ifindex, MAC: mac}
			if p.VNI != 0 {
				point.Overlay = s.overlayAt(p, inside)
			}
			points[p.ID] = point
		}
	}
	return points
}

// overlayAt returns the overlay segments of a port by their numbers. Ports of one port group share them: done are those
// of the ports before.
func (s *Slots) overlayAt(p *plan.Port, done map[policyIn]*flow.Overlay) *flow.Overlay {
	at := policyIn{p.Policy, p.VNI}
	if done[at] == nil {
		all := flow.Overlay{}
		for seg := range segmentsOf(p) {
			all[s.Segments[seg]] = flow.Segment{VNI: seg.VNI, VLAN: seg.VLAN}
		}
		done[at] = &all
	}
	return done[at]
}

// overlayOf returns the overlay segments of a switch by their numbers, nil for none.
func (s *Slots) overlayOf(sw *plan.Switch) *flow.Overlay {
	if sw.Tunnel == nil {
		return nil
	}
	all := flow.Overlay{}
	for seg, n := range s.Segments {
		if seg.Switch == sw.Name {
			all[n] = flow.Segment{VNI: seg.VNI, VLAN: seg.VLAN}
		}
	}
	return &all
}
