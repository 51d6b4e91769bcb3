package model

import (
	"encoding/binary"

	"heddle/internal/spec"
)

// member is the uplink of a LAG that carries a frame of the segment (S52); nil when none is usable.
func member(g *lag, f *header, s Segment) *uplink {
	var room [spec.MaxLAGMembers]*uplink
	return hashed(append(room[:0], g.members...), lagHash(g.Hash, f, s), (*uplink).usable)
}

// leaves is the uplink by which the run's frame leaves on a path; nil for none.
func (r *run) leaves(p path) *uplink {
	if p.lag != nil {
		return r.h.rules.member(p.lag, &r.head, r.seg)
	}
	return p.uplink
}

// lagHash is 0–255 (frame-rules §4, "The LAG hash").
func lagHash(set spec.LAGHash, f *header, s Segment) uint32 {
	words, ports := flowWords(f)
	if words == nil || set == spec.HashMAC {
		words, ports = f.raw[:12], nil
	}
	if set == spec.HashIPVLAN || set == spec.HashIPPortVLAN {
		words = binary.BigEndian.AppendUint32(words[:len(words):len(words)], uint32(s.VLAN))
	}
	if set == spec.HashIPPort || set == spec.HashIPPortVLAN {
		words = append(words[:len(words):len(words)], ports...)
	}
	var x uint32
	for ; len(words) > 0; words = words[4:] {
		x = (x ^ binary.BigEndian.Uint32(words)) * 0x9e3779b1
		x ^= x >> 15
	}
	return x * 0x85ebca6b >> 24
}

// flowWords are the addresses and ports of a packet, as in the frame; nil for those that it lacks. Fragments have no
// ports here, so that all fragments of a datagram use one member.
func flowWords(f *header) (addresses, ports []byte) {
	p := f.packet
	if p.version == 0 {
		return nil, nil
	}
	if !p.fragment {
		ports = p.ports
	}
	return append(p.src[:len(p.src):len(p.src)], p.dst...), ports
}
