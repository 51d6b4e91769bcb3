package adapters

import (
	"maps"

	"heddle/internal/controller/part"
)

// asking is what a connection's host has been asked to look at anew.
type asking struct {
	anew, anewSent uint64 // numbers of the newest question, and of the newest that was sent
	open           map[part.Adapter]question
}

// question is one that is not answered yet.
type question struct {
	number uint64
	rivals map[string]uint64 // hosts and generations that were known when it was asked
}

// askAnew has the host look at its ports.
func askAnew(h *host, n part.Adapter, rivals map[string]uint64) {
	if q, is := h.open[n]; is && maps.Equal(q.rivals, rivals) {
		return
	}
	if h.open == nil {
		h.open = map[part.Adapter]question{}
	}
	h.anew++
	h.open[n] = question{h.anew, rivals}
	poke(h)
}

// looked takes in that a host has reported what it has since it was asked. The caller holds the lock.
func (b *Book) looked(h *host, number uint64) {
	if number == 0 || number > h.anewSent {
		return
	}
	again := map[part.Adapter]bool{}
	for n, q := range h.open {
		if q.number > number {
			continue
		}
		delete(h.open, n)
		if p, runs := h.running[n]; runs {
			p.sure = q.rivals
			h.running[n], again[n] = p, true
		}
	}
	b.judge(again)
}
