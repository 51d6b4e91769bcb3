package model

import (
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// choose is the uplink a port's team selects (S42, S45, S46, D10; frame-rules §4); nil when none is usable. source is the
// MAC that source-mac hashes.
func choose(p *port, f *header, source plan.MAC) *uplink {
	if p.teaming() == spec.ExplicitOrder {
		if u := firstUsable(p.active); u != nil {
			return u
		}
		return firstUsable(p.standby)
	}
	h := teamHash(p, f, source)
	var room [16]*uplink
	left := append(room[:0], p.active...)
	for len(left) > 0 {
		i := int(h % uint32(len(left)))
		if left[i].usable() {
			return left[i]
		}
		left = append(left[:i], left[i+1:]...)
	}
	return firstUsable(p.standby) // S45
}

func firstUsable(list []*uplink) *uplink {
	for _, u := range list {
		if u.usable() {
			return u
		}
	}
	return nil
}

func teamHash(p *port, f *header, source plan.MAC) uint32 {
	switch p.teaming() {
	case spec.SourceMAC: // D10
		return uint32(source[5])
	case spec.IPHash: // S46
		return uint32(ipHash(f))
	default: // S42, D10
		return p.Number
	}
}

// ipHash is the exclusive or of the last bytes of the IP addresses, or of the bytes where IPv4 would have them.
func ipHash(f *header) byte {
	const eth = 14
	if f.inner == typeIPv6 {
		return f.payloadByte(eth+8+15) ^ f.payloadByte(eth+24+15)
	}
	return f.payloadByte(eth+12+3) ^ f.payloadByte(eth+16+3)
}
