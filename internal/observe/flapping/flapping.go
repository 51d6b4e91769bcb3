package flapping

import (
	"cmp"
	"slices"
	"time"

	"heddle/internal/plan"
)

// Bounds of a ledger.
const (
	// Window is for how long a MAC counts after it was learned last. It is that after which a MAC is forgotten by
	// default (S19), so that one that is silent for long and comes back does not count.
	Window = 5 * time.Minute
	// most is how many MACs are watched at a time; others are left out until one of them no longer counts.
	most = 4096
	// Listed is how many are listed at most.
	Listed = 64
	// Often is from how many times on within the window a MAC is listed.
	Often = 2
)

// Key is a MAC in a segment.
type Key struct {
	Switch  string
	Segment plan.Segment
	MAC     string
}

// MAC is one that was learned more than once.
type MAC struct {
	Key
	// Port is the one on which it was learned last.
	Port  string
	Times int
	Last  time.Time
}

// Ledger is what a host has learned of late.
type Ledger struct {
	macs map[Key]MAC
	// fresh is until when every MAC counts: there is nothing to look for before, however much is learned.
	fresh time.Time
}

// Learned takes in that a MAC was learned on a port.
func (l *Ledger) Learned(k Key, port string, at time.Time) {
	if l.macs == nil {
		l.macs = map[Key]MAC{}
	}
	m, known := l.macs[k]
	if known && at.Sub(m.Last) > Window {
		m.Times = 0
	}
	if !known && len(l.macs) >= most {
		if l.expire(at); len(l.macs) >= most {
			return
		}
	}
	m.Key, m.Port, m.Last, m.Times = k, port, at, m.Times+1
	l.macs[k] = m
	if end := at.Add(Window); end.Before(l.fresh) { // events may come a little late
		l.fresh = end
	}
}

func (l *Ledger) expire(at time.Time) {
	if !at.After(l.fresh) {
		return
	}
	l.fresh = at.Add(Window)
	for k, m := range l.macs {
		switch end := m.Last.Add(Window); {
		case at.After(end):
			delete(l.macs, k)
		case end.Before(l.fresh):
			l.fresh = end
		}
	}
}

// Again lists the MACs that were learned more than once, those that were learned most often first.
func (l *Ledger) Again(at time.Time) (list []MAC) {
	l.expire(at)
	for _, m := range l.macs {
		if m.Times >= Often {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b MAC) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.MAC, b.MAC), cmp.Compare(a.Switch, b.Switch),
			cmp.Compare(a.Segment.String(), b.Segment.String()))
	})
	return list[:min(len(list), Listed)]
}
