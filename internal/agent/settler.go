package agent

import (
	"time"
)

// The rate at which devices and peers can make the agent work: a guest that changes its adapter over and over costs
// no more than settleShare of a core, and up to settleSaved of unused time may be used at once, so that single
// changes never wait.
const (
	settleShare = 5 // one part in
	settleSaved = 200 * time.Millisecond
)

// settler repairs the state outside of commands: at once, together with other changes, or with the next tick.
type settler struct {
	*shared
	reconcile func() error

	settling bool  // a reconcile is under way
	retry    bool  // the last reconcile failed
	late     error // what failed after a plan came into force
	// paid is when all the time that settling took is made up for.
	paid time.Time
	// later fires when a settle that had to wait is due; nil when none waits.
	later *time.Timer
}

// spent takes down what a settle took.
func (st *settler) spent(began, ended time.Time) {
	if least := ended.Add(-settleSaved * settleShare); st.paid.Before(least) {
		st.paid = least
	}
	st.paid = st.paid.Add(settleShare * ended.Sub(began))
	if st.later != nil {
		st.later.Stop()
		st.later = nil
	}
}

// settleSoon settles what devices or peers changed: at once, or, when they change all the time, when it is their turn.
// A failover does not wait for it.
func (st *settler) settleSoon() {
	if st.later != nil {
		return
	}
	if wait := time.Until(st.paid); wait > 0 {
		st.later = time.NewTimer(wait)
		return
	}
	st.settle()
}

// itsTurn is ready when a settle that had to wait is due.
func (st *settler) itsTurn() <-chan time.Time {
	if st.later == nil {
		return nil
	}
	return st.later.C
}

// settle reconciles outside of a command: a failure is logged and tried again with the next tick.
func (st *settler) settle() {
	began := time.Now()
	err := st.reconcile()
	st.spent(began, time.Now())
	st.retry = err != nil || st.late != nil
	switch {
	case err != nil:
		st.complain("activate the plan", err)
	case st.late != nil:
		st.complain("finish the work that the active plan leaves", st.late)
	default:
		st.lastErr = ""
	}
}
