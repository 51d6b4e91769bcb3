package agent

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// effect is what the kernel does.
type effect struct {
	*shared
	ports *ports

	applied   *binding.Desired  // nil before anything is active
	redo      bool              // what is applied was not applied whole
	flip      dataplane.Instant // when applied came into force
	littered  bool              // by a change since the last tick
	commanded bool              // the reconcile at hand is a command's, which is refused when it cannot be remembered
	problems  map[plan.PortID]problem.Problem
}

// putInForce makes the kernel do what is desired, for all ports at one instant, and the state file say so. The file is
// written beside the one that counts before that instant, so that a full disk refuses the change while nothing has
// happened yet, and replaces it right after: a crash in between leaves the old configuration for the next start, and
// what counts is never mixed. What nobody commanded, such as an uplink that is back, goes into force also when it
// cannot be written down.
func (ef *effect) putInForce(d binding.Desired) error {
	began := time.Now()
	ef.ports.keepNumbers()
	staged := ef.stage()
	at, err := ef.kernel.Change(d, func() error {
		if _, err := staged(); ef.commanded {
			// what links and guests do is not refused; save says so, and is tried again
			return err
		}
		return nil
	})
	next, _ := staged()
	if at == (dataplane.Instant{}) {
		ef.meters.Failed()
		if next != nil {
			err = errors.Join(err, next.Discard())
		}
		return err
	}
	ef.applied, ef.redo, ef.flip = &d, err != nil, at
	if next != nil {
		err = errors.Join(err, next.Commit())
	}
	took := time.Since(began)
	ef.meters.Applied(took)
	ef.log.Debug("plan activated", "took", took)
	return err
}

// stage writes the state beside the file that counts, while the kernel's tables are written; the function it returns
// waits for that. Nobody else is at the state meanwhile.
func (ef *effect) stage() func() (*state.Staged, error) {
	var next *state.Staged
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		next, err = ef.store.Stage(ef.state)
	}()
	return func() (*state.Staged, error) {
		<-done
		return next, err
	}
}

// timed runs a change and returns when it was active, counted from readAt (CLOCK_MONOTONIC of the command, 0 = from
// now).
func (ef *effect) timed(out *api.Applied, readAt int64, change func() error) error {
	now, err := dataplane.Monotonic()
	if err != nil {
		return err
	}
	if readAt <= 0 || readAt > now { // a client that does not say, or whose clock is another
		readAt = now
	}
	before := ef.flip
	// A change of a thousand ports makes some megabytes of garbage; collecting it takes as long as the change itself,
	// and can wait.
	collect := debug.SetGCPercent(-1)
	err = change()
	debug.SetGCPercent(collect)
	if err != nil {
		return err
	}
	if ef.flip != before {
		out.ActiveAfterSeconds = float64(ef.flip.After-readAt) / 1e9
		out.ActiveAt = &api.Instant{Before: ef.flip.Before, After: ef.flip.After}
		ef.log.Info("the change is active", slog.Float64("ms", out.ActiveAfterSeconds*1e3))
		ef.littered = true
	}
	return nil
}

func (ef *effect) eachMember(f func(plan.PortID)) {
	for _, sw := range ef.applied.Plan.Switches {
		for _, u := range sw.Uplinks {
			f(u.ID)
		}
		for _, p := range sw.Ports {
			f(p.ID)
		}
	}
}

// allMembers are the ports and uplinks of the plan.
func (ef *effect) allMembers() (ids []plan.PortID) {
	ef.eachMember(func(id plan.PortID) { ids = append(ids, id) })
	return ids
}
