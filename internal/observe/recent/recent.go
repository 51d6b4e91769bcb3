package recent

import (
	"time"

	"heddle/internal/plan"
)

// Span is the time over which frames count as sent lately.
const Span = time.Hour

// step is how far readings that are kept are apart at least, so that a port costs 13 of them at most.
const step = 5 * time.Minute

// reading is a counter at one time.
type reading struct {
	at time.Time
	n  uint64
}

// Counts has the readings of the last hour, and the last one before that. It is for one goroutine; its zero value is
// ready for use.
type Counts struct {
	ports map[plan.PortID][]reading
}

// Note takes in how many frames each port has sent so far. Ports that are not among them are forgotten.
func (c *Counts) Note(now time.Time, totals map[plan.PortID]uint64) {
	next := make(map[plan.PortID][]reading, len(totals))
	for id, n := range totals {
		list := c.ports[id]
		switch last := len(list) - 1; {
		case last >= 0 && n < list[last].n: // the port has another slot
			list = []reading{{now, 0}}
		case last < 0 || now.Sub(list[last].at) >= step:
			list = append(list, reading{now, n})
		}
		for len(list) > 1 && now.Sub(list[1].at) >= Span {
			list = list[1:]
		}
		next[id] = list
	}
	c.ports = next
}

// Since says how many frames a port has sent lately, of which it has sent total so far, and during what time. The time
// is shorter than an hour where the port, or whoever counts, is younger, and 0 where nothing was noted of the port:
// then it is all that it has ever sent.
func (c *Counts) Since(id plan.PortID, total uint64, now time.Time) (frames uint64, during time.Duration) {
	list := c.ports[id]
	if len(list) == 0 || total < list[len(list)-1].n {
		return total, 0
	}
	first := list[0]
	for _, r := range list[1:] {
		if now.Sub(r.at) < Span {
			break
		}
		first = r
	}
	return total - first.n, now.Sub(first.at)
}
