package plan

import (
	"fmt"
	"strconv"
)

// SegmentKind is how the frames of a segment are tagged.
type SegmentKind string

// The kinds of segment.
const (
	SegmentUntagged SegmentKind = "untagged"
	SegmentQ        SegmentKind = "802.1q"
	SegmentAD       SegmentKind = "802.1ad"
	// every segment of a trunk: a trunk port's own address is known in all of them
	SegmentTrunk SegmentKind = "trunk"
)

// Segment is a broadcast domain of a switch in the form of commands and the API; its zero value is none.
type Segment struct {
	Kind SegmentKind `json:"kind"`
	ID   uint16      `json:"id,omitzero"` // the VLAN, 1–4094
	// VNI is that of an overlay segment, in which the VLAN then is; 0 for none.
	VNI uint32 `json:"vni,omitzero"`
}

// SegmentOf returns the segment of a VLAN; 0 is the untagged one. With ad it is an 802.1ad VLAN.
func SegmentOf(vlan uint16, ad bool) Segment {
	switch {
	case vlan == 0:
		return Segment{Kind: SegmentUntagged}
	case ad:
		return Segment{Kind: SegmentAD, ID: vlan}
	}
	return Segment{Kind: SegmentQ, ID: vlan}
}

// In returns the segment as one inside an overlay segment; 0 for none.
func (s Segment) In(vni uint32) Segment {
	s.VNI = vni
	return s
}

// Words returns the segment as people read it: "VLAN 10", "802.1ad VLAN 10", "untagged", "VNI 5000", "VLAN 10 in VNI
// 5000"; "" for none.
func (s Segment) Words() string {
	if vni := s.VNI; vni != 0 {
		s.VNI = 0
		if s.Kind == SegmentUntagged {
			return fmt.Sprintf("VNI %d", vni)
		}
		return fmt.Sprintf("%s in VNI %d", s.Words(), vni)
	}
	switch s.Kind {
	case SegmentQ:
		return fmt.Sprintf("VLAN %d", s.ID)
	case SegmentAD:
		return fmt.Sprintf("802.1ad VLAN %d", s.ID)
	}
	return string(s.Kind)
}

// String returns the segment as people write it: "untagged", "10", "ad:10", "trunk", "vni:5000", "vni:5000/10"; "" for
// none.
func (s Segment) String() string {
	if vni := s.VNI; vni != 0 {
		s.VNI = 0
		if s.Kind == SegmentUntagged {
			return fmt.Sprintf("vni:%d", vni)
		}
		return fmt.Sprintf("vni:%d/", vni) + s.String()
	}
	switch s.Kind {
	case SegmentQ:
		return strconv.Itoa(int(s.ID))
	case SegmentAD:
		return fmt.Sprintf("ad:%d", s.ID)
	}
	return string(s.Kind)
}
