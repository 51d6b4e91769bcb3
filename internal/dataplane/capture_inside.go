package dataplane

import (
	"encoding/binary"

	"heddle/internal/abi"
)

// inside gives a frame of a trunk inside a VNI the tag that it has there. The switch program has the number of the
// frame's segment in place of the VLAN, as the programs of the trunk's device give it.
func (f *Captured) inside() {
	if f.VNI == 0 || len(f.Frame) < 18 || binary.BigEndian.Uint16(f.Frame[12:]) != vlanTag {
		return
	}
	tci := binary.BigEndian.Uint16(f.Frame[14:])
	if tci&abi.VIDMask != uint16(f.Segment&abi.VIDMask) {
		return
	}
	behind := binary.BigEndian.Uint16(f.Frame[16:])
	if f.VLAN != 0 || behind == vlanTag || behind == vlanTagAD {
		binary.BigEndian.PutUint16(f.Frame[14:], tci&^abi.VIDMask|f.VLAN)
		return
	}
	f.Frame = append(f.Frame[:12], f.Frame[16:]...)
	f.Length -= 4
	f.Captured -= 4
}
