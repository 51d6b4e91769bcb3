package sightings

import (
	"maps"
	"time"

	"heddle/internal/plan"
)

// Count is one counter of a port or uplink as it is now.
type Count struct {
	// What names the counter.
	What string
	N    uint64
	// Cause stands for the settings that decide whether it grows. When they change, what was counted before is no
	// longer held against the port.
	Cause string
	// Was is the Cause at the reading before, where it was another one: what grew until now, grew under that.
	Was string
}

// Sighting is what is known of one counter.
type Sighting struct {
	// N is the counter as it was read last, Before the part that was counted under other settings, which ended at
	// Since. Since is zero while the settings have not changed.
	N      uint64    `json:"n"`
	Before uint64    `json:"before,omitzero"`
	Since  time.Time `json:"since,omitzero"`
	Cause  string    `json:"cause,omitzero"`
	// First and Last are when it was seen to grow under these settings. Zero is unknown: it was counted before the
	// ledger began.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Counted is what was counted under the settings of now.
func (s Sighting) Counted() uint64 { return s.N - s.Before }

// Seen are the sightings of a host, by port or uplink and by counter.
type Seen map[plan.PortID]map[string]Sighting

// Of is one sighting, false where the counter is zero or was never read.
func (s Seen) Of(id plan.PortID, what string) (Sighting, bool) {
	one, ok := s[id][what]
	return one, ok
}

// Ledger keeps sightings, one for each counter that is not zero, and since when ports have had no device.
type Ledger struct {
	seen    Seen
	absent  map[plan.PortID]Absence
	began   bool // there was a reading before, by this ledger or the one that it was read from
	watched bool // likewise of absences
	changed bool
}

// Absence is since when a port or uplink has had no device.
type Absence struct {
	Since time.Time `json:"since"`
	// AtLeast: it had none already when somebody looked first.
	AtLeast bool `json:"atLeast,omitzero"`
}

// New makes a ledger that knows nothing: what has been counted so far has no date.
func New() *Ledger { return &Ledger{seen: Seen{}, absent: map[plan.PortID]Absence{}} }

// Note records a reading of all counters. Ports that are not in it are forgotten.
func (l *Ledger) Note(at time.Time, all map[plan.PortID][]Count) {
	next := make(Seen, len(all))
	for id, counts := range all {
		for _, c := range counts {
			if c.N == 0 {
				continue
			}
			was, known := l.seen[id][c.What]
			one := was.after(at, c, known || l.began)
			if !known || one != was {
				l.changed = true
			}
			if next[id] == nil {
				next[id] = make(map[string]Sighting, len(counts))
			}
			next[id][c.What] = one
		}
	}
	l.changed = l.changed || len(next) != len(l.seen)
	l.seen, l.began = next, true
}

// after is the sighting with one more reading; datable says that there was a reading before this one.
func (s Sighting) after(at time.Time, c Count, datable bool) Sighting {
	switch {
	case !datable: // nobody knows when
		return Sighting{N: c.N, Cause: c.Cause}
	case s.N == 0 && c.Was != "" && c.Was != c.Cause: // they were counted under settings that have changed since
		return Sighting{N: c.N, Before: c.N, Since: at, Cause: c.Cause}
	case s.N == 0 || c.N < s.N: // the first of them, or a counter that began anew
		return Sighting{N: c.N, Cause: c.Cause, First: at, Last: at}
	case c.Cause != s.Cause:
		return Sighting{N: c.N, Before: c.N, Since: at, Cause: c.Cause}
	case c.N > s.N:
		if s.Counted() == 0 {
			s.First = at
		}
		s.N, s.Last = c.N, at
	}
	return s
}

// Seen are the sightings so far; later readings do not change them.
func (l *Ledger) Seen() Seen { return maps.Clone(l.seen) } // Note makes the inner maps anew

// Watch records which of all ports and uplinks have a device.
func (l *Ledger) Watch(at time.Time, has map[plan.PortID]bool) {
	next := map[plan.PortID]Absence{}
	for id, present := range has {
		if present {
			continue
		}
		was, known := l.absent[id]
		if !known {
			was = Absence{Since: at, AtLeast: !l.watched}
			l.changed = true
		}
		next[id] = was
	}
	l.changed = l.changed || len(next) != len(l.absent)
	l.absent, l.watched = next, true
}

// Absent is since when ports and uplinks have had no device.
func (l *Ledger) Absent() map[plan.PortID]Absence { return maps.Clone(l.absent) }
