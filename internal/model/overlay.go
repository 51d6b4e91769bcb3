package model

import (
	"time"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// overlaySpace follows a switch's name where its overlay segments are meant.
const overlaySpace = "/overlay"

// split takes the ports of overlay segments out of a switch, and returns them as a switch of their own: nothing passes
// between the two, and its only uplink is the tunnel (frame-rules §10). nil for a switch without a tunnel.
func (h *Host) split(sw *vswitch, f plan.Facts, t *tables) *vswitch {
	pt := sw.plan.Tunnel
	if pt == nil {
		return nil
	}
	tunnel := &uplink{Uplink: &plan.Uplink{ID: pt.ID, Number: pt.Number, Device: pt.Device, VLANs: plan.AllVLANs()},
		tunnel: true, tally: h.tallyOf(pt.ID)}
	tunnel.fact, tunnel.connected = f[pt.ID]
	over := &vswitch{plan: sw.plan, tables: t, named: map[string]*port{}, owner: map[plan.MAC][]*port{},
		members: map[Segment][]*port{}, devices: map[plan.MAC]bool{}, uplinks: []*uplink{tunnel}}
	var rest []*port
	for _, p := range sw.ports {
		if p.VNI == 0 {
			rest = append(rest, p)
			continue
		}
		p.active, p.standby = []path{{uplink: tunnel}}, nil
		over.ports = append(over.ports, p)
		over.named[p.ID.Name] = p
		delete(sw.named, p.ID.Name)
	}
	sw.ports = rest
	sw.own()
	over.own()
	return over
}

// FrameFrom hands a frame to a switch that comes from its tunnel, in a VNI.
func (h *Host) FrameFrom(sw string, vni uint32, frame []byte, now time.Duration) Result {
	return h.frame(plan.PortID{Switch: sw, Name: spec.TunnelName}, vni, frame, now)
}

// numbered is how many bytes a frame of a tunnel has more than inside its VNI: the number of its segment is a tag to
// the switch (frame-rules §10).
func (r *run) numbered(at *uplink, tagged bool) int {
	if at == nil || !at.tunnel || tagged {
		return 0
	}
	return 4
}

// nested reports whether the port is a trunk inside a VNI.
func (p *port) nested() bool { return p.VNI != 0 && p.Policy.VLAN.V.Mode == plan.VLANTrunk }

// numberedAt is the same of an untagged frame that comes from a trunk inside a VNI.
func (r *run) numberedAt(p *port) int {
	if p == nil || !p.nested() || r.head.tags > 0 || len(r.head.raw) < ethernetHeader || !p.Policy.VLAN.V.Set.Has(0) {
		return 0
	}
	return 4
}
