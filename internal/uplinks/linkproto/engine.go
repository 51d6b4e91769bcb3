package linkproto

import (
	"sync"
	"time"
)

// idle is how long the engine sleeps when nothing is due.
const idle = time.Hour

// protocol is what an engine drives. Its methods run in the engine's goroutine and return when they must be called
// again at the latest; zero: only when something happens.
type protocol interface {
	adopt(now time.Time) time.Time // the wanted configuration may have changed
	frame(now time.Time, h heard) time.Time
	tick(now time.Time) time.Time
}

// engine is the goroutine of one protocol, and another one that passes on its reports: the receiver of reports may be
// busy for a while, and the protocol continues meanwhile.
type engine struct {
	wires   *wires
	poked   chan struct{} // of capacity 1
	ripe    chan struct{} // of capacity 1: there are reports
	done    chan struct{}
	threads sync.WaitGroup
}

func newEngine(w *wires) *engine {
	return &engine{wires: w, poked: make(chan struct{}, 1), ripe: make(chan struct{}, 1), done: make(chan struct{})}
}

func (e *engine) start(p protocol, deliver func()) {
	e.threads.Go(func() { e.run(p) })
	e.threads.Go(func() {
		for {
			select {
			case <-e.done:
				return
			case <-e.ripe:
				deliver()
			}
		}
	})
}

// signal sets a flag that may already be set.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (e *engine) run(p protocol) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		var next time.Time
		select {
		case <-e.done:
			return
		case <-e.poked:
			next = p.adopt(time.Now())
		case h := <-e.wires.heard:
			next = p.frame(time.Now(), h)
		case <-timer.C:
			next = p.tick(time.Now())
		}
		wait := idle
		if !next.IsZero() {
			wait = max(time.Until(next), 0)
		}
		timer.Reset(wait)
	}
}

// stop ends both goroutines and waits for them; it leaves the sockets open.
func (e *engine) stop() {
	close(e.done)
	e.threads.Wait()
}
