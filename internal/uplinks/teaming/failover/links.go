package failover

import (
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Flapping means more than flapLimit link-downs within flapWindow. Such an uplink is used again once its link has been
// up for flapCalm.
const (
	flapLimit  = 60
	flapWindow = time.Minute
	flapCalm   = time.Minute
)

// Links follows the links of a host's uplinks. The zero value is ready for use; it is for one goroutine.
type Links struct{ by map[plan.PortID]*link }

type link struct {
	up    bool
	downs uint32        // the count lost of Observe
	since time.Time     // when it came up; zero: it was up when it was first seen
	delay time.Duration // how long it must stay up
	// settled: the link has stayed up long enough.
	settled  bool
	recent   []time.Time // link-downs within flapWindow, the newest last
	flapping bool
}

// Observe records that the uplink's link is up or down at that time; up means that its device exists, is
// administratively up, and has carrier. lost is the kernel's count of how often the carrier was lost, so that a drop
// too short to be seen counts. The first observation of an uplink is accepted as it is, so that a start of the agent
// takes no uplink out of use. delay is the switch's up-delay; a change of it does not affect an uplink that is in use.
func (l *Links) Observe(uplink plan.PortID, up bool, lost uint32, delay time.Duration, now time.Time) {
	k, known := l.by[uplink]
	if !known {
		if l.by == nil {
			l.by = map[plan.PortID]*link{}
		}
		l.by[uplink] = &link{up: up, downs: lost, settled: up, delay: delay}
		return
	}
	k.delay = delay
	switch {
	case up && k.up && lost > k.downs:
		k.settled, k.since = false, now
		k.wentDown(now)
	case up && !k.up:
		k.since = now
	case !up && k.up:
		k.settled = false
		k.wentDown(now)
	}
	k.up, k.downs = up, lost
	if up && !now.Before(k.ready()) {
		k.settled, k.flapping = true, false
	}
}

// Lost returns the kernel's count of how often the uplink's carrier was lost, as it was last observed.
func (l *Links) Lost(uplink plan.PortID) uint32 {
	if k := l.by[uplink]; k != nil {
		return k.downs
	}
	return 0
}

func (k *link) wentDown(now time.Time) {
	k.recent = append(k.recent, now)
	for now.Sub(k.recent[0]) >= flapWindow {
		k.recent = k.recent[1:]
	}
	if len(k.recent) > flapLimit {
		k.flapping = true
		k.recent = k.recent[len(k.recent)-flapLimit:] // one more would change nothing
	}
}

// ready returns when a link that stays up may be used.
func (k *link) ready() time.Time {
	if k.flapping {
		return k.since.Add(max(k.delay, flapCalm))
	}
	return k.since.Add(k.delay)
}

// Out returns why an uplink whose link is up is not used, none if it is used or its link is down.
func (l *Links) Out(uplink plan.PortID, now time.Time) problem.Problem {
	k := l.by[uplink]
	switch {
	case k == nil || !k.up || k.settled || !now.Before(k.ready()):
		return problem.Problem{}
	case k.flapping:
		return problem.Problem{Code: problem.Flapping, Want: flapLimit, For: max(k.delay, flapCalm)}
	}
	return problem.Problem{Code: problem.UpDelay, For: k.delay}
}

// Next returns when an uplink that is out of use may be used again if nothing else happens; false if none is.
func (l *Links) Next() (at time.Time, ok bool) {
	for _, k := range l.by {
		if !k.up || k.settled {
			continue
		}
		if r := k.ready(); !ok || r.Before(at) {
			at, ok = r, true
		}
	}
	return at, ok
}

// Keep removes the uplinks that are not wanted any more.
func (l *Links) Keep(wanted func(plan.PortID) bool) {
	for id := range l.by {
		if !wanted(id) {
			delete(l.by, id)
		}
	}
}
