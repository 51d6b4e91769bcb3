package agent

import (
	"time"
)

// The share of CPU time that devices and peers can make the agent use: a guest that changes its adapter over and over
// costs no more than settleShare of a core. Up to settleSaved of unused time may be used at once, so that single
// changes never wait.
const (
	settleShare = 5 // the share is one part in five
	settleSaved = 200 * time.Millisecond
)

// settler repairs the state outside of commands: at once, together with other changes, or with the next tick.
type settler struct {
	*shared
	reconcile func() error
	// asked reports whether parts want something else than the last reconcile made.
	asked func() bool

	settling bool  // a reconcile is running
	retry    bool  // the last reconcile failed
	late     error // what failed after a plan became active
	// paid is the time from which the next settle may start at once: until then, earlier settles have used up the
	// share.
	paid time.Time
	// later fires when a delayed settle is due; nil when none is delayed.
	later *time.Timer
}

// spent adds the duration of a settle to the account.
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

// settleSoon settles what devices or peers changed: at once, or, if they change all the time, when the share of CPU
// time allows it. A failover does not wait for this.
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

// settleNext settles after the call that is being answered, or when the share of CPU time allows it.
func (st *settler) settleNext() {
	if st.later == nil {
		st.later = time.NewTimer(max(0, time.Until(st.paid)))
	}
}

// itsTurn is ready when a delayed settle is due.
func (st *settler) itsTurn() <-chan time.Time {
	if st.later == nil {
		return nil
	}
	return st.later.C
}

// ask settles if parts want something else by now.
func (st *settler) ask() {
	if st.asked() {
		st.settle()
	}
}

// settle reconciles outside of a command: a failure is logged and tried again on the next tick.
func (st *settler) settle() {
	began := time.Now()
	err := st.reconcile()
	st.spent(began, time.Now())
	st.retry = err != nil || st.late != nil
	switch {
	case err != nil:
		st.Complain("activate the plan", err)
	case st.late != nil:
		st.Complain("finish the work that the active plan leaves", st.late)
	default:
		st.Contented()
	}
}
