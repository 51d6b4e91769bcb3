package dataplane

import (
	"bytes"
	"testing"

	"heddle/internal/abi"
)

// TestS112_ACapturedFrameHasTheVLANInside: in place of the number of its segment.
func TestS112_ACapturedFrameHasTheVLANInside(t *testing.T) {
	const number = 5
	frame := func(rest ...byte) []byte {
		return append(bytes.Repeat([]byte{2}, 12), append(rest, 8, 0, 1, 2, 3, 4)...)
	}
	for _, c := range []struct {
		name      string
		vni       uint32
		vlan      uint16
		in, shown []byte
	}{
		{"a VLAN, with its priority", 5000, 20, frame(0x81, 0, 0xa0, number), frame(0x81, 0, 0xa0, 20)},
		{"untagged", 5000, 0, frame(0x81, 0, 0, number), frame()},
		{"untagged with a second tag", 5000, 0, frame(0x81, 0, 0x60, number, 0x81, 0, 0, 7),
			frame(0x81, 0, 0x60, 0, 0x81, 0, 0, 7)},
		{"no tag", 5000, 20, frame(), frame()},
		{"at the tunnel", 5000, 20, frame(0x81, 0, 0, 20), frame(0x81, 0, 0, 20)},
		{"in no VNI", 0, 20, frame(0x81, 0, 0, number), frame(0x81, 0, 0, number)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Captured{CaptureRecord: abi.CaptureRecord{Segment: 3<<abi.SegmentSwitchShift | number,
				Length: uint32(len(c.in)), Captured: uint32(len(c.in))}, VNI: c.vni, VLAN: c.vlan,
				Frame: bytes.Clone(c.in)}
			f.inside()
			if !bytes.Equal(f.Frame, c.shown) || int(f.Length) != len(c.shown) || int(f.Captured) != len(c.shown) {
				t.Errorf("%x of %d bytes, want %x", f.Frame, f.Length, c.shown)
			}
		})
	}
}
