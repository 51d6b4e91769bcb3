package storms

import (
	"time"

	"heddle/internal/plan"
)

// A storm begins after beginLooks looks in a row with at least Least broadcasts a second, and ends after endLooks looks
// in a row with less than half. ARP of some thousand hosts in one VLAN stays below; a loop of slow links is far above.
const (
	Least      = 1000
	beginLooks = 3
	endLooks   = 5
)

// shortest is the shortest time between two looks at an uplink, so that a late look and a punctual one are not a rate.
const shortest = 500 * time.Millisecond

// Sample are counters of an uplink.
type Sample struct {
	// Broadcasts is how many broadcasts have arrived, Reflected how many frames that this host itself had sent.
	Broadcasts, Reflected uint64
}

// Storm is a storm at an uplink.
type Storm struct {
	// Rate is how many broadcasts a second arrive, Own how many frames a second that this host itself has sent, as
	// counted last.
	Rate, Own int
	Since     time.Time
}

// Loop reports whether this host's own frames come back again and again: they are what the storm is made of.
func (s Storm) Loop() bool { return 2*s.Own >= s.Rate }

// Change is a storm that has begun, or has ended.
type Change struct {
	Uplink plan.PortID
	Storm  Storm
	Over   bool
}

// Watch looks for storms. The zero value has seen nothing. It is for one goroutine.
type Watch struct {
	at map[plan.PortID]*state
}

type state struct {
	last  Sample
	at    time.Time
	high  int // looks in a row that count towards the beginning
	low   int // and towards the end
	storm *Storm
}

// Look takes the present counters of all uplinks, and returns what has changed. Uplinks that are missing are forgotten.
func (w *Watch) Look(now time.Time, samples map[plan.PortID]Sample) (changes []Change) {
	next := make(map[plan.PortID]*state, len(samples))
	for id, s := range samples {
		st := w.at[id]
		if st == nil {
			st = &state{last: s, at: now}
		}
		next[id] = st
		if c, ok := st.look(now, s); ok {
			c.Uplink = id
			changes = append(changes, c)
		}
	}
	for id, st := range w.at {
		if next[id] == nil && st.storm != nil {
			changes = append(changes, Change{Uplink: id, Storm: *st.storm, Over: true})
		}
	}
	w.at = next
	return changes
}

// Storm returns the storm at an uplink; false if there is none.
func (w *Watch) Storm(uplink plan.PortID) (Storm, bool) {
	if st := w.at[uplink]; st != nil && st.storm != nil {
		return *st.storm, true
	}
	return Storm{}, false
}

func (st *state) look(now time.Time, s Sample) (Change, bool) {
	passed := now.Sub(st.at)
	if passed < shortest && passed >= 0 {
		return Change{}, false
	}
	last := st.last
	st.last, st.at = s, now
	if passed < 0 || s.Broadcasts < last.Broadcasts || s.Reflected < last.Reflected {
		return Change{}, false // the clock was set, or the counters are new
	}
	rate := func(n uint64) int { return int(float64(n) / passed.Seconds()) }
	broadcasts, own := rate(s.Broadcasts-last.Broadcasts), rate(s.Reflected-last.Reflected)
	if st.storm == nil {
		if broadcasts < Least {
			st.high = 0
			return Change{}, false
		}
		if st.high++; st.high < beginLooks {
			return Change{}, false
		}
		st.low, st.storm = 0, &Storm{broadcasts, own, now}
		return Change{Storm: *st.storm}, true
	}
	if broadcasts >= Least/2 {
		st.low, st.storm.Rate, st.storm.Own = 0, broadcasts, own
		return Change{}, false
	}
	if st.low++; st.low < endLooks {
		return Change{}, false
	}
	over := Change{Storm: *st.storm, Over: true}
	st.high, st.storm = 0, nil
	return over, true
}
