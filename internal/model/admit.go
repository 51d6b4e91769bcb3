package model

import (
	"heddle/internal/abi"
	"heddle/internal/plan"
)

var (
	stpGroup  = plan.MAC{0x01, 0x80, 0xc2, 0, 0, 0}
	pvstGroup = plan.MAC{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd}
	cdpGroup  = plan.MAC{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc}
)

// admit decides whether a frame may enter the switch at all (frame-rules §1).
func admit(r *run) abi.Reason {
	if r.via != nil {
		return admitFromUplink(r)
	}
	return admitFromPort(r)
}

func admitFromPort(r *run) abi.Reason {
	p, f := r.from, &r.head
	if p.Policy.Blocked.V { // S41
		return abi.ReasonPortBlocked
	}
	if p.fact.LoopBlocked != "" { // S110
		return abi.ReasonLoopBlocked
	}
	if reason := sourceFault(f); reason != abi.ReasonNone {
		return reason
	}
	if f.isProbe() { // S110
		return abi.ReasonLoopBlocked
	}
	if (f.dst == stpGroup || f.dst == pvstGroup) && r.sw.plan.BlockGuestBPDU { // S36
		return abi.ReasonGuestBPDU
	}
	if !p.Policy.ForgedTransmits.V && f.src != p.mac { // S1, S2, C1
		return abi.ReasonForgedTransmit
	}
	return tooLong(r)
}

func admitFromUplink(r *run) abi.Reason {
	u, f := r.via, &r.head
	if reason := sourceFault(f); reason != abi.ReasonNone {
		return reason
	}
	if linkLocal(f.dst) { // S37, S96
		r.host = hostOnly
		return abi.ReasonNone
	}
	r.host = hostShare(r)
	if u.Blocked { // S41
		return abi.ReasonPortBlocked
	}
	if f.isProbe() { // S110
		return abi.ReasonLoopBlocked
	}
	return tooLong(r)
}

// sourceFault is D8: no frame has a group or a zero source.
func sourceFault(f *header) abi.Reason {
	switch {
	case f.src.IsGroup():
		return abi.ReasonSourceGroup
	case f.src.IsZero():
		return abi.ReasonSourceZero
	}
	return abi.ReasonNone
}

func tooLong(r *run) abi.Reason {
	if r.head.layer3() > r.sw.plan.MTU {
		return abi.ReasonMTUExceeded
	}
	return abi.ReasonNone
}

// linkLocal says whether a destination is one that switches talk to each other with: nothing for guests (S37).
func linkLocal(dst plan.MAC) bool {
	reserved := dst
	reserved[5] &= 0xf0
	return reserved == stpGroup || dst == pvstGroup || dst == cdpGroup
}

// hostShare says what the host's own stack gets of a frame from an uplink (S96).
func hostShare(r *run) hostCopy {
	switch {
	case r.head.class != unicast:
		return hostToo
	case r.head.dst.IsZero() || r.head.dst != r.via.fact.DeviceMAC:
		return hostNothing
	case r.sw.owner[r.head.dst] != nil: // a port has taken over the device's MAC
		return hostOtherwise
	}
	return hostToo
}
