package compile

import (
	"encoding/binary"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Trunk is a port that is a trunk inside a VNI. Its methods do what the programs of its device do, for dry runs of the
// switch program.
type Trunk struct {
	Switch   string
	VNI      uint32
	Untagged bool // it has the VLAN 0, that of untagged frames
}

// TrunkOf returns what a port is as a trunk inside a VNI; false if it is none.
func TrunkOf(p *plan.Port) (Trunk, bool) {
	if !IsTrunk(p) {
		return Trunk{}, false
	}
	return Trunk{p.ID.Switch, p.VNI, p.Policy.VLAN.V.Set.Has(0)}, true
}

// Enter is a frame of the trunk's owner as the switch program gets it: with the number of its segment for its VLAN. The
// program refuses a frame of no VLAN of the trunk.
func (t Trunk) Enter(s *Slots, frame []byte) []byte {
	rest, tci, tagged := frame[12:], uint16(0), false
	if isTag(rest) && len(frame) < shortest {
		return frame
	}
	switch protocol := binary.BigEndian.Uint16(rest); {
	case protocol == tagAD && binary.BigEndian.Uint16(rest[2:])&abi.VIDMask != 0:
		return frame
	case protocol == tagQ, protocol == tagAD:
		tci, rest, tagged = binary.BigEndian.Uint16(rest[2:]), rest[4:], true
	}
	vid := tci & abi.VIDMask
	if vid == 0 && (!t.Untagged || tagged && isTag(rest)) {
		return frame
	}
	number, ok := s.Segments[OverlaySegment{Switch: t.Switch, VNI: t.VNI, VLAN: vid}]
	if !ok {
		return withTag(frame, tagAD, tci, rest)
	}
	return withTag(frame, tagQ, tci&^abi.VIDMask|number, rest)
}

// Leave is a copy for the trunk's owner, which the switch program has given the number of its segment, as the owner
// gets it.
func (t Trunk) Leave(s *Slots, frame []byte) []byte {
	tci, rest := binary.BigEndian.Uint16(frame[14:]), frame[16:]
	for seg, number := range s.Segments {
		switch {
		case seg.Switch != t.Switch || seg.VNI != t.VNI || number != tci&abi.VIDMask:
		case seg.VLAN == 0 && !isTag(rest):
			return slices.Concat(frame[:12], rest)
		default:
			return withTag(frame, tagQ, tci&^abi.VIDMask|seg.VLAN, rest)
		}
	}
	return frame
}

const (
	// shortest is the least length of a frame with a tag, in bytes: a shorter one is malformed.
	shortest = 20
	// EtherTypes of tags.
	tagQ  = 0x8100
	tagAD = 0x88a8
)

// isTag reports whether what follows the addresses or a tag is a tag.
func isTag(rest []byte) bool {
	t := binary.BigEndian.Uint16(rest)
	return t == tagQ || t == tagAD
}

// withTag is a frame with another outermost tag before the rest.
func withTag(frame []byte, protocol, tci uint16, rest []byte) []byte {
	tag := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, protocol), tci)
	return slices.Concat(frame[:12], tag, rest)
}
