package model

import (
	"slices"

	"heddle/internal/abi"
)

// passControl hands link control from the wire, which is the host's, to the ports that may speak its protocol, too: a
// guest that asks the physical switch gets the answer (frame-rules §1, S170).
func passControl(r *run) {
	name := LinkControl(r.head.dst, r.head.inner)
	if r.via == nil || r.via.tunnel || r.via.Blocked || name == "" || tooLong(r) != abi.ReasonNone ||
		r.h.rules.classify(r) != abi.ReasonNone {
		return
	}
	r.target = group
	for _, p := range r.sw.in(r.seg) {
		if slices.Contains(p.Policy.GuestLinkControl.V, name) {
			r.toPort(p)
		}
	}
}
