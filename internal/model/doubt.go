package model

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// Doubt is whether it is sure that the owner of an address has it (frame-rules §10).
type Doubt struct {
	// Unverified: it is not sure; questions pass to all hosts.
	Unverified bool
	// Questioned: a question of this host's guests has passed since, at Asked.
	Questioned bool
	// Unheard: the silence of others proves nothing, because this tunnel would not hear their answer.
	Unheard bool
	// Probed: a probe was that question, which asks only who has the address.
	Probed bool
	// Asked is in eighths of a second, and starts again at 0 after some hours.
	Asked uint16
}

func eighths(now time.Duration) uint16 { return uint16(now / (time.Second / abi.Eighths)) }

// asked reports whether a question has passed so lately that an answer to it may still come.
func (d *Doubt) asked(now time.Duration) bool {
	return d.Questioned && eighths(now)-d.Asked <= abi.DefenceTime*abi.Eighths
}

// question notes that a question passes now.
func (d *Doubt) question(now time.Duration) {
	d.Questioned, d.Probed, d.Asked = true, false, eighths(now)
}

// over reports whether the last question has passed so long ago that the doubt ends.
func (d *Doubt) over(now, hold time.Duration) bool {
	return d.Questioned && uint64(eighths(now)-d.Asked) > uint64(hold*abi.Eighths/time.Second)
}

// settle makes it sure.
func (d *Doubt) settle() { *d = Doubt{Asked: d.Asked} }

// sure reports whether it is; if not, a question passes now.
func (h *Heard) sure(now, hold time.Duration) bool {
	switch {
	case !h.Unverified:
		return true
	case h.asked(now) && !h.Probed:
		return false
	case h.over(now, hold) || h.Questioned && !h.Unheard:
		h.settle()
		return true
	}
	// The answer of an owner on this host may not pass the tunnel: further questions do not prolong the doubt.
	if !h.Here || !h.Questioned {
		h.question(now)
	}
	return false
}

// asksAgain reports whether a MAC asks for an address again though it was told the same owner before; then a question
// passes now.
func (b *bindings) asksAgain(at overlay.Address, owner plan.MAC, used *Share, now time.Duration) bool {
	since := eighths(now) - used.Answered
	switch {
	case used.address != at.IP || used.owner != owner || since > abi.AskedAgainMost:
		used.address, used.owner, used.Answered = at.IP, owner, eighths(now)
		return false
	case since < abi.AskedAgainLeast:
		return false
	}
	used.Answered = eighths(now)
	b.question(at, now)
	return true
}

// question notes that a question for an address passes though its owner is known.
func (b *bindings) question(at overlay.Address, now time.Duration) {
	if h := b.heard[at]; h != nil {
		h.question(now)
	}
}

// doubt takes in that a station probes an address: its owner is asked by the probe itself. here: the station is on this
// host.
func (b *bindings) doubt(at overlay.Address, mac plan.MAC, here bool, now time.Duration) {
	b.recall(at)
	h := b.heard[at]
	if h == nil || h.Unverified || h.Here && here || h.MAC == mac {
		return
	}
	used := b.shareOf(Station{at.VNI, at.VLAN, mac}, now)
	if used.Bindings >= abi.BindingsPerSecond {
		return
	}
	used.Bindings++
	h.Doubt = Doubt{Unverified: true, Unheard: true, Questioned: true, Probed: true, Asked: eighths(now)}
}
