package model

import (
	"slices"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
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
	if p.fact.LoopBlocked != nil { // S110
		return abi.ReasonLoopBlocked
	}
	if reason := sourceFault(f); reason != abi.ReasonNone {
		return reason
	}
	if f.isProbe() { // S110
		return abi.ReasonLoopBlocked
	}
	if reason := guestControl(r); reason != abi.ReasonNone {
		return reason
	}
	if !p.Policy.ForgedTransmits.V && f.src != p.mac { // S1, S2, C1
		return abi.ReasonForgedTransmit
	}
	if reason := tooLong(r); reason != abi.ReasonNone {
		return reason
	}
	return r.h.rules.guard(r)
}

// guestControl decides about link control that a guest sends: spanning tree by the switch's filter and the port's
// exception (S36), all other protocols by the port's list (S97).
func guestControl(r *run) abi.Reason {
	f, pass := &r.head, r.from.Policy.GuestLinkControl.V
	switch {
	case !linkLocal(f.dst):
		return abi.ReasonNone
	case f.dst == stpGroup || f.dst == pvstGroup:
		if r.sw.plan.BlockGuestBPDU && !slices.Contains(pass, spec.PassBPDU) {
			return abi.ReasonGuestBPDU
		}
		return abi.ReasonNone
	}
	if name := LinkControl(f.dst, f.inner); name == "" || !slices.Contains(pass, name) {
		return abi.ReasonGuestLinkControl
	}
	return abi.ReasonNone
}

// LinkControl names the protocol that a guest speaks to a link control address, as security.guestLinkControl does; ""
// for one that no list lets pass. etherType is what follows the outermost tag.
func LinkControl(dst plan.MAC, etherType uint16) string {
	last := dst[5]
	switch {
	case !linkLocal(dst):
		return ""
	case dst == stpGroup || dst == pvstGroup:
		return spec.PassBPDU
	case dst == cdpGroup:
		return spec.PassCDP
	case etherType == 0x888e:
		return spec.PassEAPOL
	case etherType == 0x8809 && last == 0x02:
		return spec.PassLACP
	case etherType == 0x88cc && (last == 0x03 || last == 0x0e):
		return spec.PassLLDP
	case etherType == 0x88f7 && last == 0x0e:
		return spec.PassPTP
	}
	return ""
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

// sourceFault returns the reason for a group or zero source, which no frame may have (D8).
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

// linkLocal says whether a destination is an address with which switches talk to each other: no guest gets such frames
// (S37).
func linkLocal(dst plan.MAC) bool {
	return ofBridges(dst) || dst == pvstGroup || dst == cdpGroup
}

// ofBridges says whether a destination is one of the sixteen that IEEE 802.1Q keeps for bridges.
func ofBridges(dst plan.MAC) bool {
	dst[5] &= 0xf0
	return dst == stpGroup
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
