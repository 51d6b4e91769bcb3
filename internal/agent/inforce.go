package agent

import (
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/part"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/uplinks/teaming/teams"
)

// effect is what is active in the kernel.
type effect struct {
	*shared
	ports *ports
	parts *part.Table

	current   *active.Current
	redo      bool          // the last plan was applied only in part
	notBefore int64         // the instant (CLOCK_MONOTONIC) before which the present change is not active; 0: none
	writing   time.Duration // how long it took to write the last plan, without making it active
	littered  bool          // a change since the last tick left garbage
	commanded bool          // the present reconcile is for a command, and is refused if it cannot be saved
}

// activate makes the desired plan active in the kernel, for all ports at one instant, and saves the state file. The new
// file is written beside the valid one before that instant, so that a full disk refuses the change while nothing has
// happened yet, and replaces it right after. A crash in between leaves the old configuration for the next start; old
// and new are never mixed. A change that nobody commanded, such as an uplink that is up again, is activated even if it
// cannot be saved.
func (ef *effect) activate(d binding.Desired) error {
	began := time.Now()
	ef.ports.keepNumbers()
	staged := ef.stage()
	at, err := ef.kernel.Change(d, func() error {
		if _, err := staged(); ef.commanded && err != nil {
			// changes by links and guests are not refused; save reports the error and is tried again
			return err
		}
		ef.writing = time.Since(began)
		awaitInstant(ef.notBefore)
		return ef.parts.Activating(d.Plan)
	})
	ef.parts.Activated(at != dataplane.Instant{})
	next, _ := staged()
	if at == (dataplane.Instant{}) {
		ef.meters.Failed()
		if next != nil {
			err = errors.Join(err, next.Discard())
		}
		return err
	}
	ef.redo = err != nil
	ef.current.Activated(&d, at)
	if next != nil {
		err = errors.Join(err, next.Commit())
	}
	took := time.Since(began)
	ef.meters.Applied(took)
	ef.log.Debug("plan activated", "took", took)
	return err
}

// stage writes the state beside the valid file while the kernel's tables are written; the function that it returns
// waits for that. Nobody else uses the state meanwhile.
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

// timed runs a change and reports when it was active, counted from readAt (CLOCK_MONOTONIC of the command in ns; 0:
// from now).
func (ef *effect) timed(out *api.Applied, readAt int64, change func() error) error {
	now, err := dataplane.Monotonic()
	if err != nil {
		return err
	}
	if readAt <= 0 || readAt > now { // the client sent none, or has another clock
		readAt = now
	}
	before := ef.Active().Flip
	// A change of a thousand ports makes some megabytes of garbage. Collecting it takes as long as the change itself,
	// and can wait.
	collect := debug.SetGCPercent(-1)
	err = change()
	debug.SetGCPercent(collect)
	if err != nil {
		return err
	}
	if flip := ef.Active().Flip; flip != before {
		out.ActiveAfterSeconds = float64(flip.After-readAt) / 1e9
		out.ActiveAt = &api.Instant{Before: flip.Before, After: flip.After}
		ef.log.Info("the change is active", slog.Float64("ms", out.ActiveAfterSeconds*1e3))
		ef.littered = true
	}
	return nil
}

// change changes facts of what is active at once, before anything is written to disk and without touching a device. It
// returns the teams that are active then; nil where the reconcile that follows has to do it, and more.
func (ef *effect) change(edit func(plan.Facts), was *teams.Teams) (*teams.Teams, error) {
	d := *ef.Active().Applied
	d.Facts = maps.Clone(d.Facts)
	edit(d.Facts)
	now := teams.Form(&d, was)
	at, err := ef.kernel.Reteam(d)
	if err != nil {
		return nil, err
	}
	ef.current.Activated(&d, at)
	ef.state.Uses = now.Remember(d.Plan)
	return now, nil
}

// changes reports whether what is active is what the plan wants, so that a part of it can be changed alone.
func (ef *effect) changes() bool { return ef.Active().Applied != nil && !ef.ports.stale && !ef.redo }

// forCommandNow reports whether the present reconcile is for a command.
func (ef *effect) forCommandNow() bool { return ef.commanded }

// anew has the next plan written anew.
func (ef *effect) anew() { ef.redo = true }

// forCommand reconciles for a command: what cannot be saved is refused.
func (ef *effect) forCommand(reconcile func() error) error {
	ef.commanded = true
	defer func() { ef.commanded = false }()
	return reconcile()
}
