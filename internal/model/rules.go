package model

import (
	"heddle/internal/abi"
	"heddle/internal/spec"
)

// portRules says why a port refuses a copy; ReasonNone when it accepts it (frame-rules §5).
func portRules(r *run, to *port) abi.Reason {
	switch {
	case to.Policy.Blocked.V: // S41
		return abi.ReasonReceiverBlocked
	case to.fact.LoopBlocked != nil: // S110
		return abi.ReasonLoopBlocked
	case !to.fact.Up:
		return abi.ReasonReceiverDown
	case r.sw.waits(to): // S99
		if to.fact.Left {
			return abi.ReasonGuestElsewhere
		}
		return abi.ReasonReceiverWaiting
	case to.violation: // S3
		return abi.ReasonMACChange
	}
	if r.via != nil && to != r.known && r.guarded() { // S40 when the check is off
		if to.teaming() != spec.IPHash && !r.ownPath(to).takes(r.via) { // S38, S39
			return abi.ReasonReversePath
		}
		if r.sw.sentLately(station{r.seg, r.head.src}, r.now) { // S91
			return abi.ReasonReflected
		}
	}
	if r.head.layer3() > to.fact.MTU {
		return abi.ReasonMTUExceeded
	}
	return abi.ReasonNone
}

// guarded says whether the switch's check for this class of destination is on.
func (r *run) guarded() bool {
	if r.head.class == unicast {
		return r.sw.plan.ReversePathPromiscuous
	}
	return r.sw.plan.ReversePath
}

// ownPath is the path by which a receiver would send; with source-mac, the hash is of the address that an answer to
// this frame would have.
func (r *run) ownPath(to *port) path {
	if r.head.class == unicast {
		return r.h.rules.choose(to, &r.head, r.head.dst)
	}
	return r.h.rules.choose(to, &r.head, to.mac)
}

// hostRules says why the host's stack behind an uplink gets no copy.
func hostRules(r *run, behind *uplink) abi.Reason {
	if r.head.layer3() > behind.fact.MTU {
		return abi.ReasonMTUExceeded
	}
	return abi.ReasonNone
}

// uplinkRules says why an uplink refuses a copy; ReasonNone when it accepts it (frame-rules §5).
func uplinkRules(r *run, to *uplink) abi.Reason {
	switch {
	case to.Blocked: // S41
		return abi.ReasonReceiverBlocked
	case to.tunnel: // its own programs know what fits
		return abi.ReasonNone
	case !to.VLANs.Has(r.seg.VLAN): // S27
		return abi.ReasonUplinkVLAN
	case r.head.layer3() > to.fact.MTU:
		return abi.ReasonMTUExceeded
	}
	return abi.ReasonNone
}
