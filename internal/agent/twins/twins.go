package twins

import (
	"time"

	"heddle/internal/plan"
)

// A guest that moves to another host speaks there while its port is still here, for moments; a station that has the
// same MAC goes on.
const (
	// least is how long a MAC has to speak outside until that is told, and silent how long it may be silent meanwhile:
	// single frames, far apart, are no station that goes on.
	least  = 5 * time.Second
	silent = 10 * time.Second
	// again is how long it is until it is told once more, and forgotten how long it must be silent until it counts as
	// one that was never told.
	forgotten = 10 * time.Minute
	again     = time.Minute
	// most limits what is remembered, as a guest may change its MAC as it likes.
	most = 4096
)

// key is a MAC of a port.
type key struct {
	port plan.PortID
	mac  plan.MAC
}

// heard is when it spoke outside, and when that was told; zero for never.
type heard struct{ first, last, told time.Time }

// Ledger remembers which MACs of ports speak outside. The zero value is ready.
type Ledger struct{ of map[key]heard }

// Heard takes in that the MAC of a port has spoken outside, and reports whether that is to be told.
func (l *Ledger) Heard(port plan.PortID, mac plan.MAC, at time.Time) (tell bool) {
	k := key{port, mac}
	h, known := l.of[k]
	if l.of == nil {
		l.of = map[key]heard{}
	}
	if !known && len(l.of) >= most {
		l.forget()
	}
	switch {
	case !known || at.Sub(h.last) > forgotten:
		h = heard{first: at}
	case at.Sub(h.last) > silent:
		h.first = at
	}
	h.last = at
	if tell = at.Sub(h.first) >= least && (h.told.IsZero() || at.Sub(h.told) >= again); tell {
		h.told = at
	}
	l.of[k] = h
	return tell
}

// forget forgets the one that has been silent for the longest time: a station that goes on is told also while a guest
// changes its MAC all the time.
func (l *Ledger) forget() {
	var oldest key
	var last time.Time
	for k, h := range l.of {
		if last.IsZero() || h.last.Before(last) {
			oldest, last = k, h.last
		}
	}
	delete(l.of, oldest)
}
