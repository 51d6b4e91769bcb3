package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"time"
)

// maxEvents limits how much may happen between two requests: a hundred times what any experiment needs. Circulating
// frames reach it at once.
const maxEvents = 1 << 14

// ErrStorm is wrapped when frames multiply or circulate without end.
var ErrStorm = errors.New("frames circle in the simulated network")

// event is something that happens at an instant of simulated time.
type event struct {
	at  time.Duration
	seq uint64 // events of one instant happen in the order in which they were planned
	do  func()
}

// agenda is the list of future events, the earliest first.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = event{} // releases the frame's memory
	*a = (*a)[:last]
	return e
}

// loop runs events one after the other in simulated time. Nothing in it depends on the real clock or on chance: the
// same events planned in the same order happen in the same order.
type loop struct {
	now     time.Duration // since the beginning of the world
	pending agenda
	planned uint64
	limit   uint64 // events that may be planned during one run
}

// after plans something for d from now.
func (l *loop) after(d time.Duration, do func()) {
	l.planned++
	heap.Push(&l.pending, event{at: l.now + d, seq: l.planned, do: do})
}

// run runs all events of the next d, and advances the time by d. The error is ErrStorm if there are more than
// maxEvents.
func (l *loop) run(d time.Duration) error {
	end, limit := l.now+d, l.planned+l.limit
	for len(l.pending) > 0 && l.pending[0].at <= end {
		if l.planned > limit {
			return fmt.Errorf("%w: more than %d events within %v; look for a loop of links between switches, or a "+
				"switch that sends back what it gets", ErrStorm, l.limit, l.now)
		}
		e := heap.Pop(&l.pending).(event)
		l.now = e.at
		e.do()
	}
	l.now = end
	return nil
}
