package model

import (
	"encoding/binary"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// wire returns the bytes of a copy (frame-rules §6) for a receiver with tags (trunk, uplink) or without.
func wire(r *run, tagged bool) []byte {
	f := &r.head
	rest := f.raw[12:]
	if r.seg == (Segment{}) { // with its VID 0 tag, if it had one
		return append([]byte(nil), f.raw...)
	}
	if f.tags > 0 {
		rest = f.raw[16:]
	}
	out := make([]byte, 0, len(f.raw)+4)
	out = append(out, f.raw[:12]...)
	switch {
	case tagged && r.seg.VLAN != 0: // S21, S24
		tpid := uint16(typeQ)
		if r.seg.AD {
			tpid = typeAD
		}
		out = binary.BigEndian.AppendUint16(out, tpid)
		out = binary.BigEndian.AppendUint16(out, f.pcpDEI()|r.seg.VLAN)
	case tagged && f.tags > 1: // else a trunk inside the VNI would take the second tag for a VLAN
		out = binary.BigEndian.AppendUint16(out, typeQ)
		out = binary.BigEndian.AppendUint16(out, f.pcpDEI())
	}
	return append(out, rest...) // S22
}

// bytes is the copy's form for a receiver; each form is built once per frame.
func (r *run) bytes(tagged bool) []byte {
	form := &r.plainForm
	if tagged {
		form = &r.taggedForm
	}
	if *form == nil {
		*form = r.h.rules.wire(r, tagged)
	}
	return *form
}

func (r *run) toPort(p *port) {
	if reason := r.h.rules.portRules(r, p); reason != abi.ReasonNone {
		r.refuse(p.ID, p.tally, reason)
		return
	}
	b := r.bytes(p.Policy.VLAN.V.Mode == plan.VLANTrunk)
	r.res.Copies = append(r.res.Copies, Copy{To: p.ID, Frame: b})
	n := len(b)
	if p.nested() && r.seg.VLAN == 0 && !(r.head.tags > 1) {
		n += 4
	}
	p.tally.out(r.head.class, n)
	if r.via != nil {
		p.tally.bytesInFromPnic += uint64(n)
	}
	r.sayCopy(p.ID)
}

func (r *run) toUplink(u *uplink) {
	if reason := r.h.rules.uplinkRules(r, u); reason != abi.ReasonNone {
		r.refuse(u.ID, u.tally, reason)
		return
	}
	b := r.bytes(true)
	r.res.Copies = append(r.res.Copies, Copy{To: u.ID, Frame: b})
	n := len(b) + r.numbered(u, r.seg.VLAN != 0)
	u.tally.out(r.head.class, n)
	r.from.tally.bytesOutToPnic += uint64(n)
	r.sayCopy(u.ID)
	if u.tunnel && r.sw.crossing != nil {
		leave(r, u, b)
	}
}

// toHostBehind hands a port's frame to the host's own stack behind an uplink, as the wire would have brought it.
func (r *run) toHostBehind(u *uplink) {
	if reason := r.h.rules.hostRules(r, u); reason != abi.ReasonNone {
		r.refuse(u.ID, u.tally, reason)
		return
	}
	r.res.Copies = append(r.res.Copies, Copy{To: u.ID, HostStack: true, Frame: r.bytes(true)})
	u.tally.toHost++
	r.sayHost(u)
}

// toHost hands the frame to the host's own stack, in the bytes it arrived in (S96).
func (r *run) toHost() {
	r.res.Copies = append(r.res.Copies, Copy{To: r.via.ID, HostStack: true, Frame: append([]byte(nil), r.head.raw...)})
	r.via.tally.toHost++
	r.sayHost(r.via)
}

// refuse notes that a copy was considered and not made; t is nil when there is no receiver to count at.
func (r *run) refuse(at plan.PortID, t *tally, reason abi.Reason) {
	r.res.Refused = append(r.res.Refused, Refusal{Port: at, Reason: reason})
	if t != nil {
		t.refuse(reason)
	}
	r.sayRefusal(at, reason)
}

// disposition returns the frame's one fate (S94): delivered, or the refusal with the lowest number, or that nobody was
// considered.
func (r *run) disposition() abi.Reason {
	if len(r.res.Copies) > 0 {
		return abi.ReasonNone
	}
	reason := abi.ReasonUnknownUnicast
	if r.head.class != unicast {
		reason = abi.ReasonNoReceiver
	}
	for i, x := range r.res.Refused {
		if i == 0 || x.Reason < reason {
			reason = x.Reason
		}
	}
	return reason
}
