package agent

import (
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// How much is told, in the log and as events, of the changes of one port or uplink and of what is at its other end: a guest that
// sets its link up and down, or a neighbour that is another with every frame, would fill the disk and push out everything else.
const (
	tellBurst = 60
	tellEvery = 10 * time.Second
)

// Pace of what devices and peers can have the agent do: a guest that changes its adapter over and over costs no more than
// settleShare of a core, and up to settleSaved of what was not needed before may be used at once, so that single changes never wait.
const (
	settleShare = 5 // one part in
	settleSaved = 200 * time.Millisecond
)

// quiet bounds what others can have the agent do and say. The loop alone uses it.
type quiet struct {
	changes event.Limiter[plan.PortID] // of ports and uplinks
	held    bool                       // a change of a port or uplink is not told yet

	// paid is when all the time that settling took is made up for.
	paid time.Time
	// later fires when a settle that had to wait is due; nil when none waits.
	later *time.Timer
}

// newQuiet has the bounds above; the zero value has none for what is told.
func newQuiet() quiet { return quiet{changes: tellLimit()} }

// tellLimit is how much is told of one port, uplink or neighbour.
func tellLimit() event.Limiter[plan.PortID] {
	return event.Limiter[plan.PortID]{Burst: tellBurst, Every: tellEvery}
}

// tellHeld tells what was held back, as it is now, where it may be told by now.
func (a *Agent) tellHeld() {
	if a.quiet.held {
		a.report()
	}
	a.lags.TellHeld()
}

// spent takes down what a settle took.
func (q *quiet) spent(began, ended time.Time) {
	if least := ended.Add(-settleSaved * settleShare); q.paid.Before(least) {
		q.paid = least
	}
	q.paid = q.paid.Add(settleShare * ended.Sub(began))
	if q.later != nil {
		q.later.Stop()
		q.later = nil
	}
}

// settleSoon settles what devices or peers changed: at once, or, when they change all the time, when it is their turn. A
// failover does not wait for it.
func (a *Agent) settleSoon() {
	q := &a.quiet
	if q.later != nil {
		return
	}
	if wait := time.Until(q.paid); wait > 0 {
		q.later = time.NewTimer(wait)
		return
	}
	a.settle()
}

// itsTurn is ready when a settle that had to wait is due.
func (a *Agent) itsTurn() <-chan time.Time {
	if a.quiet.later == nil {
		return nil
	}
	return a.quiet.later.C
}
