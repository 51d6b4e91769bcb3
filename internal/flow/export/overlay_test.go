package export

import (
	"bytes"
	"testing"

	"heddle/internal/flow"
)

// TestS105_RecordsOfAnOverlayHaveItsVNI: layer2SegmentId is the VNI with the type of VXLAN, and the VLAN is the one
// inside; where keys have VLANs, it is 0.
func TestS105_RecordsOfAnOverlayHaveItsVNI(t *testing.T) {
	var p ports
	p.follow(flow.Points{
		1: {Number: 11, Overlay: &flow.Overlay{3: {VNI: 5000, VLAN: 10}, 4: {VNI: 16777214}}},
		2: {Number: 12, Uplink: true},
	})
	for _, c := range []struct {
		slot, vlan, inside uint16
		id                 uint64
	}{
		{1, 3, 10, 0x01_00_00_00_00_00_13_88},
		{1, 4, 0, 0x01_00_00_00_00_ff_ff_fe},
		{1, 5, 5, 0}, // a segment that has gone
		{2, 3, 3, 0},
		{2, flow.AD | 100, 100, 0},
		{9, 3, 3, 0},
	} {
		if inside, id := p.of(c.slot).segment(c.vlan); inside != c.inside || id != c.id {
			t.Errorf("slot %d, VLAN %d: VLAN %d in %#x, want %d in %#x", c.slot, c.vlan, inside, id, c.inside, c.id)
		}
	}
	s, err := newStandard()
	if err != nil {
		t.Fatal(err)
	}
	r := flow.Record{Key: flow.Key{Point: 1, VLAN: 3, EtherType: flow.IPv4, Protocol: protoUDP}}
	l, _ := s.of(&r)
	rec := make([]byte, l.t.RecordLength())
	l.fill(rec, &r, &p)
	if !bytes.Contains(rec, []byte{0, 10, 0, 10, 0, 10, 1, 0, 0, 0, 0, 0, 0x13, 0x88, 8, 0}) {
		t.Errorf("the record lacks its VLAN, thrice, its VNI and its EtherType: %x", rec)
	}
}
