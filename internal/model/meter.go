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

// MeteredCounts are what was counted of a flow; times are those given with the frames, in milliseconds. In and Out of Counts are not set.
type MeteredCounts struct {
	flow.Counts
	In, Out plan.PortID // where the last frame came in and went; zero when it was the host, or went to several
}

// TakeFlows gives what was metered since the last time.
func (h *Host) TakeFlows() map[Metered]MeteredCounts {
	taken := h.flows
	h.flows = nil
	return taken
}

// meter meters what became of the frame.
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
		if pl.port != nil && pl.port.Policy.Monitoring.Egress() || pl.uplink != nil && pl.uplink != r.out && pl.uplink.Monitoring.Egress() {
			r.meterAt(c.To, flow.Egress, c.Frame, c.To)
		}
	}
}

// arrivedAt is the port or uplink the frame came in by; zero for the host's own.
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
	key, c := dissect(r.head.raw)
	c.FrameBytes = uint64(len(frame))
	seg := r.seg
	if r.via != nil { // also when it is for the host's stack alone, and the switch has nothing to do with it
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

// sampled says whether the next packet is metered: the first of every rate + 1 (S66).
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

// dissect reads the flow of a frame as it arrived, and what it adds to it but for frame bytes.
func dissect(frame []byte) (k flow.Key, c flow.Counts) {
	copy(k.DstMAC[:], frame)
	copy(k.SrcMAC[:], frame[6:])
	rest := frame[12:]
	for range 2 {
		if isTag(binary.BigEndian.Uint16(rest)) {
			rest = rest[4:]
		}
	}
	k.EtherType = binary.BigEndian.Uint16(rest)
	rest = rest[2:]
	c = flow.Counts{Packets: 1, Bytes: uint64(len(rest))}
	switch k.EtherType {
	case typeIPv4:
		dissectIPv4(rest, &k, &c)
	case typeIPv6:
		dissectIPv6(rest, &k, &c)
	}
	return k, c
}

func dissectIPv4(b []byte, k *flow.Key, c *flow.Counts) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	header := int(b[0]&15) * 4
	if header < 20 || header > len(b) {
		return
	}
	if n := int(binary.BigEndian.Uint16(b[2:])); n >= header && n <= len(b) {
		b = b[:n]
	}
	c.Bytes, c.TOS, c.MinTTL, c.MaxTTL = uint64(len(b)), b[1], b[8], b[8]
	k.Protocol = b[9]
	copy(k.Src[:4], b[12:])
	copy(k.Dst[:4], b[16:])
	if binary.BigEndian.Uint16(b[6:])&0x1fff == 0 {
		dissectLayer4(b[header:], 1, k, c)
	}
}

func dissectIPv6(b []byte, k *flow.Key, c *flow.Counts) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	if n := int(binary.BigEndian.Uint16(b[4:])) + 40; n > 40 && n <= len(b) {
		b = b[:n]
	}
	class := uint8(binary.BigEndian.Uint16(b) >> 4)
	c.Bytes, c.TOS, c.MinTTL, c.MaxTTL = uint64(len(b)), class, b[7], b[7]
	copy(k.Src[:], b[8:])
	copy(k.Dst[:], b[24:])
	next, rest, first := b[6], b[40:], true
	for range 8 {
		length, follows := extension(next, rest)
		if !follows || !first {
			break
		}
		first = next != 44 || binary.BigEndian.Uint16(rest[2:])&0xfff8 == 0
		next, rest = rest[0], rest[min(length, len(rest)):]
		if length > 0 && len(rest) == 0 {
			break
		}
	}
	k.Protocol = next
	if first {
		dissectLayer4(rest, 58, k, c)
	}
}

// extension is the length of an IPv6 extension header of that number; follows is false for other headers and for one of which the
// packet does not have 8 bytes.
func extension(number uint8, b []byte) (length int, follows bool) {
	if len(b) < 8 {
		return 0, false
	}
	switch number {
	case 0, 43, 60, 135, 139, 140:
		return (int(b[1]) + 1) * 8, true
	case 44:
		return 8, true
	case 51:
		return (int(b[1]) + 2) * 4, true
	}
	return 0, false
}

// dissectLayer4 reads ports and flags; icmp is the number that ICMP has in the version of IP.
func dissectLayer4(b []byte, icmp uint8, k *flow.Key, c *flow.Counts) {
	switch k.Protocol {
	case 6, 17, 33, 132, 136:
		if len(b) < 4 {
			return
		}
		k.SrcPort, k.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		if k.Protocol == 6 && len(b) >= 14 {
			c.TCPFlags = binary.BigEndian.Uint16(b[12:]) & 0xfff
		}
	case icmp:
		if len(b) >= 2 {
			k.DstPort = binary.BigEndian.Uint16(b)
		}
	}
}
