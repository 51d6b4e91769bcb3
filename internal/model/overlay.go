package model

import (
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
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

// SetReach says which endpoints of other hosts the tunnels are told of, by switch, from the next SetPlan on. Then
// frames that a switch hands to its tunnel make their second run: Result.Left.
func (h *Host) SetReach(reach map[string]overlay.Reach) { h.reach = reach }

// cross gives the overlay segments of a switch their second run; before is that under the plan before, nil for none.
func (h *Host) cross(over, before *vswitch, now time.Duration) {
	if h.reach == nil {
		return
	}
	var was *Crossing
	if before != nil {
		was = before.crossing
	}
	over.crossing = NewCrossing(over.plan, over.uplinks[0].fact, h.reach[over.plan.Name]).After(was, now)
}

// Crossing is the second run of frames of a switch's overlay segments; nil where there is none.
func (h *Host) Crossing(sw string) *Crossing {
	if over := h.switches[sw+overlaySpace]; over != nil {
		return over.crossing
	}
	return nil
}

// leave is the second run of a copy that the switch has handed to its tunnel.
func leave(r *run, u *uplink, frame []byte) {
	left := r.sw.crossing.Leave(r.from.ID, r.from.VNI, frame, r.now)
	u.tally.refuseOuters(left.Outers)
	r.res.Left = &left
}

// refuseOuters counts the packets that do not leave by a tunnel.
func (t *tally) refuseOuters(list []Outer) {
	for _, o := range list {
		if o.Reason != abi.ReasonNone {
			t.refuse(o.Reason)
		}
	}
}

// Arrive hands a frame to a switch's tunnel that comes from an outer address, in a VNI; the switch gets it if the
// tunnel takes it. An address that is not valid is taken to be a right one.
func (h *Host) Arrive(sw string, from netip.Addr, vni uint32, frame []byte, now time.Duration) (Arrival, Result) {
	at, c := h.places[plan.PortID{Switch: sw, Name: spec.TunnelName}], h.Crossing(sw)
	if c == nil || at.uplink == nil || !at.uplink.connected {
		return Arrival{}, Result{}
	}
	a := c.Arrive(from, vni, frame, now)
	at.uplink.tally.refuseOuters(a.Repeated)
	if a.Reason != abi.ReasonNone {
		at.uplink.tally.in(classOf(plan.MAC(frame[:6])), len(frame))
		at.uplink.tally.drop(a.Reason)
		return a, Result{Reason: a.Reason}
	}
	return a, h.FrameFrom(sw, vni, frame, now)
}

// FrameFrom hands a frame to a switch that its tunnel has taken, in a VNI.
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
