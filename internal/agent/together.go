package agent

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/agent/definition"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/spec"
)

// prepared is a version that hosts are about to activate together (S101): it was made in memory, and nothing of it is
// in force.
type prepared struct {
	id   string
	next *state.Slice
	h    *definition.Handed
	// beside is what else was asked for of the host then, problems why the version can't be activated beside it.
	beside   intent
	problems []string
	// took is how long it took to make.
	took  time.Duration
	until time.Time // it is forgotten then
}

// preparedTime is how long a version is prepared that nobody decides about.
const preparedTime = time.Minute

// Prepare makes another version of the controller's definition ready, all but activating it: problems says why it could
// not be active.
func (sl *slicing) Prepare(ctx context.Context, id string, next *state.Slice) (problems []string, err error) {
	h, err := sl.read(ctx, next)
	if err == nil {
		err = sl.Do(ctx, func() error {
			p := &prepared{id: id, next: next, h: h, until: time.Now().Add(preparedTime)}
			err := sl.rehearse(p)
			if err == nil {
				sl.prepared = p
				sl.log.Info("ready to change together with other hosts", "id", id, "revision", next.Revision, "took",
					p.took)
			}
			return err
		})
	}
	return sl.problemsOf(ctx, err)
}

// rehearse makes a version in memory, beside what the host has now.
func (sl *slicing) rehearse(p *prepared) error {
	began := time.Now()
	p.beside = sl.ports.intent()
	if err := sl.trials.busy(); err != nil {
		return api.NewError(api.Invalid, "a change of the way to the host's own addresses is being tried there")
	}
	if faults := spec.CheckDevices(p.h.Config, sl.lookup); len(faults) > 0 {
		return faults
	}
	err := sl.changer.rehearse(func() { sl.definition.Take(p.h, p.next) })
	p.took = time.Since(began)
	return err
}

// preparedAnew makes the prepared version again where something else is asked for of the host since, such as a port
// that was connected: changed says that it can't be activated any more, or can again, with why.
func (sl *slicing) preparedAnew() (id string, problems []string, changed bool) {
	p := sl.prepared
	if p == nil {
		return "", nil, false
	}
	if time.Now().After(p.until) {
		sl.prepared = nil
		return "", nil, false
	}
	if sl.ports.intent().asksAs(p.beside) {
		return "", nil, false
	}
	problems, err := sl.problemsOf(context.Background(), sl.rehearse(p))
	if err != nil {
		problems = []string{err.Error()}
	}
	sl.log.Info("what is to change together with other hosts was made anew, as the host has changed", "id", p.id,
		"took", p.took, "problems", problems)
	changed = len(problems)+len(p.problems) > 0
	p.problems = problems
	return p.id, problems, changed
}

// Bounds of how long before its instant the work for a version begins in the loop.
const (
	leastLead = 10 * time.Millisecond
	mostLead  = 500 * time.Millisecond
)

// lead is how long before its instant a version is written beside the one that is active: twice what it took before.
func (sl *slicing) lead(p *prepared) time.Duration {
	lead := leastLead + 2*sl.effect.writing
	if p != nil {
		lead += 2 * p.took
	}
	return min(lead, mostLead)
}

// awaitLead returns when it is time to write a version that is activated at an instant. Until then the host changes as
// ever: the plan is made of what it has then.
func (sl *slicing) awaitLead(ctx context.Context, next *state.Slice) error {
	if next.NotBefore == 0 {
		return nil
	}
	sl.log.Info("a change together with other hosts is decided", "revision", next.Revision, "instant", next.NotBefore)
	var lead time.Duration
	if err := sl.Do(ctx, func() error { lead = sl.lead(sl.prepared); return nil }); err != nil {
		return err
	}
	for {
		now, err := dataplane.Monotonic()
		if err != nil {
			return err
		}
		left := time.Duration(next.NotBefore-now) - lead
		if left <= 0 {
			return nil
		}
		nap := max(min(left, napTime), left-mostLead)
		timer := time.NewTimer(nap)
		select {
		case <-timer.C:
		case <-sl.Stopped():
			timer.Stop()
			return errors.New("the agent is stopping")
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		woke, err := dataplane.Monotonic()
		if err != nil {
			return err
		}
		lead = max(lead, min(mostLead, lead+2*(time.Duration(woke-now)-nap))) // the machine is busy
	}
}

// napTime is how long is slept at a time shortly before an instant: how late that ends tells how busy the machine is.
const napTime = 10 * time.Millisecond

// hurry lets the caller's work go before that of other processes, until what it returns is called: a busy machine would
// do it some tens of milliseconds late. Where that is not allowed nothing changes.
func hurry() (done func()) {
	runtime.LockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err == nil {
		err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	}
	return func() {
		if err == nil {
			err = unix.SchedSetAttr(0, before, 0)
		}
		runtime.UnlockOSThread()
	}
}

// outdated reports whether the host has a later version than this one, which waited for its instant meanwhile.
func (sl *slicing) outdated(next *state.Slice) bool {
	has := sl.definition.Given()
	return next.NotBefore != 0 && has != nil && has.Epoch == next.Epoch && has.Revision > next.Revision
}

// awaitInstant returns at that instant (CLOCK_MONOTONIC, in nanoseconds), or at once where it is over. The loop is the
// caller, for a few milliseconds.
func awaitInstant(at int64) {
	if at == 0 {
		return
	}
	if now, err := dataplane.Monotonic(); err != nil || at-now > int64(2*mostLead) {
		return
	}
	until := unix.NsecToTimespec(at)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR {
	}
}
