package model

import (
	"encoding/binary"

	"heddle/internal/flow"
	"heddle/internal/plan"
)

// This file is metering (frame-rules §9). The model has no frames with segmentation: each stands for one packet.

// Metered is a flow at the point where it was observed. Key.Point is not set.
type Metered struct {
	At  plan.PortID
	Key flow.Key
}

// MeteredCounts are the counts of a flow; times are those given with the frames, in milliseconds. In and Out of Counts
// are not set.
type MeteredCounts struct {
	flow.Counts
	In, Out plan.PortID // where the last frame came in and went out; zero if that was the host or several ports
}

// TakeFlows returns what was metered since the last call.
func (h *Host) TakeFlows() map[Metered]MeteredCounts {
	taken := h.flows
	h.flows = nil
	return taken
}

// meter meters the frame at every point where that is due, once its fate is known.
func (r *run) meter() {
	var to plan.PortID
	if len(r.res.Copies) == 1 && !r.res.Copies[0].HostStack {
		to = r.res.Copies[0].To
	}
	switch {
	case r.from != nil && r.from.Policy.Monitoring.Ingress():
		r.meterAt(r.from.ID, flow.Ingress, r.head.raw, to)
	case r.via != nil && r.via.Monitoring.Ingress():
		r.meterAt(r.via.ID, flow.Ingress, r.head.raw, to)
	}
	for _, c := range r.res.Copies {
		pl := r.h.places[c.To]
		if c.HostStack {
			continue
		}
		if pl.port != nil && pl.port.Policy.Monitoring.Egress() || pl.uplink != nil && pl.uplink != r.out &&
			pl.uplink.Monitoring.Egress() {
			r.meterAt(c.To, flow.Egress, c.Frame, c.To)
		}
	}
}

// arrivedAt is the port or uplink where the frame came in; zero for the host's own frames.
func (r *run) arrivedAt() plan.PortID {
	switch {
	case r.from != nil:
		return r.from.ID
	case r.via != nil:
		return r.via.ID
	}
	return plan.PortID{}
}

// meterAt meters the frame at one point, in the form it has there.
func (r *run) meterAt(at plan.PortID, d flow.Direction, frame []byte, out plan.PortID) {
	if !r.h.tallies[at].sampled(d, r.sw.plan.IPFIX.SamplingRate) {
		return
	}
	key, c := flowOf(&r.head)
	c.FrameBytes = uint64(len(frame))
	seg := r.seg
	if r.via != nil { // also for a frame to the host's stack alone, which the switch does not process
		seg = segmentOf(r.head.vid(), r.head.ad)
	}
	key.Direction, key.VLAN = d, seg.VLAN
	if seg.AD {
		key.VLAN |= flow.AD
	}
	c.First, c.Last = r.now.Milliseconds(), r.now.Milliseconds()
	if r.h.flows == nil {
		r.h.flows = map[Metered]MeteredCounts{}
	}
	x := r.h.flows[Metered{at, key}]
	x.Add(c)
	x.In, x.Out = r.arrivedAt(), out
	r.h.flows[Metered{at, key}] = x
}

// sampled reports whether the next packet is metered: the first of every rate + 1 (S66).
func (t *tally) sampled(d flow.Direction, rate int) bool {
	if rate == 0 {
		return true
	}
	skip := min(t.skip[d], rate)
	if skip > 0 {
		t.skip[d] = skip - 1
		return false
	}
	t.skip[d] = rate
	return true
}

// flowOf is the flow of a frame as it arrived, and what the frame adds to it, except for frame bytes.
func flowOf(h *header) (k flow.Key, c flow.Counts) {
	p := h.packet
	k.DstMAC, k.SrcMAC = h.dst, h.src
	k.EtherType, k.Protocol = p.kind, p.protocol
	copy(k.Src[:], p.src)
	copy(k.Dst[:], p.dst)
	switch {
	case p.ports != nil:
		k.SrcPort, k.DstPort = binary.BigEndian.Uint16(p.ports), binary.BigEndian.Uint16(p.ports[2:])
	case p.icmp != nil:
		k.DstPort = binary.BigEndian.Uint16(p.icmp)
	}
	c = flow.Counts{Packets: 1, Bytes: uint64(len(p.bytes)), TOS: p.tos, MinTTL: p.ttl, MaxTTL: p.ttl,
		TCPFlags: p.tcpFlags}
	return k, c
}
