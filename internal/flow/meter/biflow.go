package meter

import "heddle/internal/flow"

// opposite is the key of the other direction of a conversation at the same point. ok is false for a flow that can have
// none: one to a group, or an ICMP message that is not answered by another type.
func opposite(k *flow.Key) (o flow.Key, ok bool) {
	if k.SrcMAC.IsGroup() || k.DstMAC.IsGroup() {
		return flow.Key{}, false
	}
	o = *k
	o.Direction = flow.Egress - k.Direction
	o.SrcMAC, o.DstMAC = k.DstMAC, k.SrcMAC
	o.Src, o.Dst = k.Dst, k.Src
	o.SrcPort, o.DstPort = k.DstPort, k.SrcPort
	icmp := k.EtherType == flow.IPv4 && k.Protocol == protoICMP
	if icmp || k.EtherType == flow.IPv6 && k.Protocol == protoICMPv6 {
		o.SrcPort = 0
		o.DstPort, ok = answer(k.DstPort, icmp)
		return o, ok
	}
	return o, true
}

// Protocols of ICMP.
const (
	protoICMP   = 1
	protoICMPv6 = 58
)

// answer is the type and code of the message that answers the given one, or is answered by it (RFC 792, RFC 950, RFC
// 4443).
func answer(typeCode uint16, v4 bool) (uint16, bool) {
	if typeCode&0xff != 0 {
		return 0, false
	}
	if !v4 {
		switch t := typeCode >> 8; t {
		case 128, 129:
			return (t ^ 1) << 8, true
		}
		return 0, false
	}
	switch typeCode >> 8 {
	case 8:
		return 0, true
	case 0:
		return 8 << 8, true
	case 13, 15, 17:
		return typeCode + 1<<8, true
	case 14, 16, 18:
		return typeCode - 1<<8, true
	}
	return 0, false
}

// partner is the entry of a flow's other direction, whose key has this hash; -1 if there is none.
func (t *table) partner(k *flow.Key, hash uint32) int {
	o, ok := opposite(k)
	if !ok {
		return -1
	}
	j, ok := t.findHash(hash, &o)
	if !ok {
		return -1
	}
	return j
}

// both returns when the next record of a conversation is due: the conversation ends when both directions have ended.
func (t *table) both(a, b *slot, now tick) expiry {
	const over = finFlag | rstFlag
	finished := a.flags&over != 0 && b.flags&over != 0 || (a.flags|b.flags)&rstFlag != 0
	return t.next(max(a.seen, b.seen), min(a.reported, b.reported), a.unsent() || b.unsent(), finished, now)
}
