package meter

import "time"

const (
	// perRound is the number of new flows that a round should bring: that many are in the kernel's tables at a
	// time, and are still in a processor's cache when they are drained.
	perRound = 4096
	// shortestRound limits what drains cost: each waits for the kernel, and reads every table.
	shortestRound = 50 * time.Millisecond
)

// nextRound is how long after a drain the next one is due. The drain brought begun new flows, took after the drain
// before; before is the previous result of nextRound. A round is shortened at once, and lengthened to at most twice the
// one before, so that its length does not oscillate with flows that come in bursts. Flows that last and are counted
// again do not shorten it.
func nextRound(every, before, took time.Duration, begun int) time.Duration {
	next := every
	if begun > 0 {
		next = time.Duration(float64(took) * perRound / float64(begun))
	}
	return min(max(min(next, 2*before), shortestRound), every)
}

// rounds is when drains, and the work that goes with some of them, are due, by Instant.Up.
type rounds struct {
	began   bool          // drained at least once
	drained time.Duration // the last drain
	length  time.Duration // until the next
	looked  time.Duration // when the work was last done that is done once per Options.Every
}

// due reports whether the next drain is due.
func (r *rounds) due(now Instant) bool { return !r.began || now.Up-r.drained >= r.length }

// wait is the time until the next drain.
func (r *rounds) wait(now Instant) time.Duration { return r.drained + r.length - now.Up }

// over notes a drain that brought this many new flows. After a failed drain the next one does not come sooner than
// usual.
func (r *rounds) over(now Instant, every time.Duration, begun int, failed bool) {
	if failed || !r.began {
		r.length = every
	} else {
		r.length = nextRound(every, r.length, now.Up-r.drained, begun)
	}
	r.drained, r.began = now.Up, true
}

// look reports whether the work that is done once per Options.Every is due, and notes that it is done.
func (r *rounds) look(now Instant, every time.Duration) bool {
	if r.looked > 0 && now.Up-r.looked < every {
		return false
	}
	r.looked = now.Up
	return true
}

// Round is how long after the last drain the next is due: Options.Every, or less while many flows begin. Any goroutine
// may call it.
func (m *Meter) Round() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rounds.length
}
