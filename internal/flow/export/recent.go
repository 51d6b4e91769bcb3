package export

import (
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/meter"
)

// recentEnds remembers for a moment between which endpoints frames cross. Flows that end at a high rate are mostly
// those of a few pairs of stations, and to ask the kernel for each record would cost more than the record itself.
type recentEnds struct {
	locator flow.Locator
	known   map[flow.Crossing]crossed
	since   time.Duration // when the first of them was asked for, by meter.Instant.Up
}

// crossed is an answer of a flow.Locator.
type crossed struct {
	ends flow.Ends
	ok   bool
}

const (
	// recentFor is for how long an answer is good: a record has the endpoint by which the host knew the MAC at most
	// that long before the record was made.
	recentFor = 100 * time.Millisecond
	// recentMost is how many answers are remembered.
	recentMost = 4096
)

// at forgets what is no longer recent. Records that are made next are those of that instant.
func (r *recentEnds) at(now meter.Instant) {
	if len(r.known) > 0 && now.Up-r.since < recentFor {
		return
	}
	clear(r.known)
	r.since = now.Up
}

// locate is what the locator says, or said a moment ago.
func (r *recentEnds) locate(way flow.Crossing) (flow.Ends, bool) {
	if c, ok := r.known[way]; ok {
		return c.ends, c.ok
	}
	ends, ok := r.locator.Locate(way)
	if r.known == nil || len(r.known) >= recentMost {
		r.known = map[flow.Crossing]crossed{}
	}
	r.known[way] = crossed{ends, ok}
	return ends, ok
}
