package model

import (
	"heddle/internal/abi"
	"heddle/internal/plan"
)

// classify finds the segment a frame belongs to (frame-rules §2).
func classify(r *run) abi.Reason {
	f := &r.head
	if r.via != nil && r.via.tunnel {
		r.seg = Segment{VNI: r.vni, VLAN: f.vid()}
		return abi.ReasonNone
	}
	if r.via != nil {
		if !r.via.VLANs.Has(f.vid()) { // S27
			return abi.ReasonUplinkVLAN
		}
		r.seg = segmentOf(f.vid(), f.ad)
		return abi.ReasonNone
	}
	v := &r.from.Policy.VLAN.V
	if v.Mode == plan.VLANTrunk {
		r.seg = segmentOf(f.vid(), f.ad)
		r.seg.VNI = r.from.VNI
		if !r.from.admits(r.seg) || hidesTag(r.from, f) { // S24, S25
			return abi.ReasonVLANNotAllowed
		}
		return abi.ReasonNone
	}
	if f.vid() != 0 || f.tags > 1 { // S23, D9: a priority tag may not hide another tag either
		return abi.ReasonGuestTagged
	}
	r.seg = Segment{VNI: r.from.VNI} // S23
	if v.Mode == plan.VLANAccess {
		r.seg.VLAN = v.ID // S21
	}
	return abi.ReasonNone
}

// hidesTag reports whether a priority tag hides another tag inside a VNI, where it is not carried: then the other one
// would name the VLAN.
func hidesTag(p *port, f *header) bool { return p.VNI != 0 && f.tags > 1 && f.vid() == 0 }
