package foresee

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

// MostSenders bounds how many senders are looked at.
const MostSenders = 4096

// Sent is how many frames a port has sent during a time; During is 0 if that is since the port was connected.
type Sent struct {
	Frames uint64
	During time.Duration
}

// Flow is what a port sent to one destination, as it was metered where it entered the switch.
type Flow struct {
	At            plan.PortID
	VLAN          plan.Segment
	MAC, To       plan.MAC   // source and destination
	Src, Dst      netip.Addr // not valid where the frames have none
	Frames, Bytes uint64     // of whole frames
	First, Last   time.Time
}

// Seen is what a host knows of what its ports sent lately.
type Seen struct {
	// Ports has the counters; a port that is not there has sent nothing.
	Ports map[plan.PortID]Sent
	// Flows are metered flows from ports into the switch. FlowsLeft is how many more there are.
	Flows     []Flow
	FlowsLeft int
	// Now is the time of the flows' clock.
	Now time.Time
}

// sender is what a port sends with one source, in one VLAN, to one destination.
type sender struct {
	at       plan.PortID
	vlan     plan.Segment
	mac      plan.MAC
	src, dst netip.Addr
	to       plan.MAC // zero: not known
}

// amount is how much a sender sent.
type amount struct {
	frames, bytes uint64
	during        time.Duration
	ofPort        bool
	perhaps       bool
}

// senders are those of a host, the ones with the most frames first.
type senders struct {
	list    []sender
	of      map[sender]amount
	left    int
	counted int
}

// station is a source of a port in a VLAN.
type station struct {
	at   plan.PortID
	vlan plan.Segment
	mac  plan.MAC
}

// sendersOf finds the senders: in flows, in what was learned, and, for ports of which no more is known, by the port's
// own MAC. after is the plan with the change.
func sendersOf(s *trace.Session, h *trace.Host, after *plan.Plan, seen Seen) *senders {
	out := &senders{of: map[sender]amount{}, left: seen.FlowsLeft}
	known := map[station]bool{}
	ports := map[plan.PortID]bool{}
	for _, f := range seen.Flows {
		if f.Frames == 0 || seen.Now.Sub(f.Last) > time.Hour {
			continue
		}
		out.add(sender{f.At, f.VLAN, f.MAC, f.Src, f.Dst, f.To},
			amount{frames: f.Frames, bytes: f.Bytes, during: seen.Now.Sub(f.First)})
		known[station{f.At, f.VLAN, f.MAC}], ports[f.At] = true, true
	}
	for _, m := range h.Learned {
		st := station{m.Port, plan.SegmentOf(m.Segment.VLAN, m.Segment.AD), m.MAC}
		if sent, ok := seen.Ports[m.Port]; ok && !known[st] {
			out.add(sender{at: st.at, vlan: st.vlan, mac: st.mac},
				amount{frames: sent.Frames, during: sent.During, ofPort: true})
			known[st], ports[st.at] = true, true
		}
	}
	later := portsOf(after)
	for id, p := range portsOf(h.Plan) {
		sent := seen.Ports[id]
		if sent.Frames == 0 || ports[id] || s.MACOf(id).IsZero() {
			continue
		}
		out.counted++
		out.add(sender{at: id, vlan: segmentOf(p, later[id]), mac: s.MACOf(id)}, amount{frames: sent.Frames,
			during: sent.During, ofPort: true, perhaps: p.Policy.VLAN.V.Mode == plan.VLANTrunk})
	}
	out.order()
	return out
}

func (s *senders) add(k sender, a amount) {
	have, ok := s.of[k]
	if !ok {
		s.list = append(s.list, k)
		s.of[k] = a
		return
	}
	have.frames, have.bytes, have.during = have.frames+a.frames, have.bytes+a.bytes, max(have.during, a.during)
	s.of[k] = have
}

// order sorts the senders, and leaves those out that are too many.
func (s *senders) order() {
	slices.SortFunc(s.list, func(a, b sender) int {
		return cmp.Or(cmp.Compare(s.of[b].frames, s.of[a].frames), cmp.Compare(a.at.String(), b.at.String()),
			cmp.Compare(a.mac.String(), b.mac.String()), cmp.Compare(a.vlan.String(), b.vlan.String()),
			a.dst.Compare(b.dst), a.src.Compare(b.src), cmp.Compare(a.to.String(), b.to.String()))
	})
	if more := len(s.list) - MostSenders; more > 0 {
		s.list, s.left = s.list[:MostSenders], s.left+more
	}
}

func portsOf(p *plan.Plan) map[plan.PortID]*plan.Port {
	all := map[plan.PortID]*plan.Port{}
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			all[port.ID] = port
		}
	}
	return all
}

// segmentOf is a segment in which a port sends now. For a trunk nobody knows: then it is the first one that it would
// not send in any more, or the first one of all.
func segmentOf(p, after *plan.Port) plan.Segment {
	v := p.Policy.VLAN.V
	switch v.Mode {
	case plan.VLANAccess:
		return plan.SegmentOf(v.ID, false)
	case plan.VLANTrunk:
		first, found := uint16(0), false
		for id := range uint16(vlans) {
			if !v.Set.Has(id) {
				continue
			}
			if after != nil && !stays(after.Policy.VLAN.V, v, id) {
				return plan.SegmentOf(id, v.AD && id > 0)
			}
			if !found {
				first, found = id, true
			}
		}
		return plan.SegmentOf(first, v.AD && first > 0)
	}
	return plan.SegmentOf(0, false)
}

// vlans is how many ids a trunk may have: 0, for untagged frames, to 4094.
const vlans = 4095

// stays reports whether a trunk of another plan has that VLAN, too.
func stays(after, now plan.VLAN, id uint16) bool {
	return after.Mode == plan.VLANTrunk && after.Set.Has(id) && (id == 0 || after.AD == now.AD)
}
