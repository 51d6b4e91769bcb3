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
	// Asked is in eighths of a second, and starts again at 0 after some hours.
	Asked uint16
}

func eighths(now time.Duration) uint16 { return uint16(now / (time.Second / abi.Eighths)) }

// asked reports whether a question has passed so lately that an answer to it may still come.
func (d *Doubt) asked(now time.Duration) bool {
	return d.Questioned && eighths(now)-d.Asked <= abi.DefenceTime*abi.Eighths
}

// settle makes it sure.
func (d *Doubt) settle() { d.Unverified, d.Questioned, d.Unheard = false, false, false }

// sure reports whether it is; if not, a question passes now.
func (d *Doubt) sure(now time.Duration) bool {
	switch {
	case !d.Unverified:
		return true
	case d.asked(now):
		return false
	case d.Questioned && !d.Unheard:
		d.settle()
		return true
	}
	d.Questioned, d.Asked = true, eighths(now)
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
	if h := b.heard[at]; h != nil {
		h.Questioned, h.Asked = true, eighths(now)
	}
	return true
}

// doubt takes in that a MAC probes an address: its owner is asked by the probe itself.
func (b *bindings) doubt(at overlay.Address, mac plan.MAC, now time.Duration) {
	b.recall(at)
	h := b.heard[at]
	if h == nil || h.Unverified || h.MAC == mac {
		return
	}
	h.Doubt = Doubt{Unverified: true, Unheard: true, Questioned: true, Asked: eighths(now)}
}
