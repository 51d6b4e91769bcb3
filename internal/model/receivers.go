package model

import "heddle/internal/abi"

// receivers lists who is considered for a copy (frame-rules §4): ports in the plan's order, and at most one uplink.
// noUplink is set when a copy is due to an uplink but the team yields none.
func receivers(r *run) (ports []*port, up *uplink, noUplink bool) {
	ports = r.portsConsidered()
	if !r.wantsUplink() {
		return ports, nil, false
	}
	up = r.leaves(r.h.rules.choose(r.from, &r.head, r.head.src)) // S32, S33: exactly one
	return ports, up, up == nil
}

func (r *run) portsConsidered() []*port {
	if r.target == hostAlone {
		return nil
	}
	list := r.room[:0]
	for _, p := range r.sw.in(r.seg) { // S7, S26: the segment's members, whatever their port group
		if p != r.from && r.considers(p) {
			list = append(list, p)
		}
	}
	r.room = list
	return list
}

func (r *run) considers(p *port) bool {
	switch r.target {
	case group: // S26, S33
		return true
	case hostBehind, outside: // S190
		return p.promiscuous()
	case known: // S5, S6, S12, S34
		return p == r.known || p.promiscuous()
	default: // S13, S14, S32
		return p.floods() || p.promiscuous()
	}
}

// leftBehind returns the port that owns the destination of a frame from outside, or has learned it, and is silent
// because its guest has left (S99); nil for none, and for one that is considered with the other ports.
func (r *run) leftBehind() *port {
	if r.via == nil || r.head.class != unicast || r.target != unknown {
		return nil
	}
	var p *port
	if owners := r.sw.owner[r.head.dst]; len(owners) > 0 {
		p = owners[0]
	} else if e := r.learnedEntry(); e != nil {
		p = e.port
	}
	if p == nil || !p.fact.Left || !p.admits(r.seg) || r.considers(p) ||
		r.h.rules.portRules(r, p) != abi.ReasonGuestElsewhere {
		return nil
	}
	return p
}

// wantsUplink reports whether a copy is due to the sender's uplink: if the destination is not known here, or always
// with txUplink (S35); never for a frame from an uplink (S31).
func (r *run) wantsUplink() bool {
	if r.from == nil || len(r.sw.uplinks) == 0 {
		return false
	}
	here := r.target == known || r.target == hostBehind
	return !here || r.from.TxUplink // S34, S35
}
