package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// Attaching a device takes the kernel some 10 ms. So that a thousand of them do not keep commands and failures waiting, it is
// done in turns of the loop.
const (
	firstTurn = 250 * time.Millisecond // within a command or a notification: a handful of devices is attached when it returns
	nextTurn  = 50 * time.Millisecond
)

// attaching is where the attaching and detaching of devices stands.
type attaching struct {
	left, most int
	missing    map[uint32]error // dataplane.Kernel.Unattached
	waiting    []chan struct{}  // closed when nothing is left
	complained time.Time
}

// putInForce makes the kernel do what is desired, for all ports at one instant, and the state file say so. The file is written
// beside the one that counts before that instant, so that a full disk refuses the change while nothing has happened yet, and
// replaces it right after: a crash in between leaves the old configuration for the next start, and what counts is never mixed. What
// nobody commanded, such as an uplink that is back, goes into force also when it cannot be written down.
func (a *Agent) putInForce(d binding.Desired) error {
	began := time.Now()
	a.keepNumbers()
	staged := a.stage()
	at, err := a.kernel.Change(d, func() error {
		if _, err := staged(); a.commanded { // what links and guests do is not refused; save says so, and is tried again
			return err
		}
		return nil
	})
	next, _ := staged()
	if at == (dataplane.Instant{}) {
		a.meters.Failed()
		if next != nil {
			err = errors.Join(err, next.Discard())
		}
		return err
	}
	a.applied, a.redo, a.flip = &d, err != nil, at
	if next != nil {
		err = errors.Join(err, next.Commit())
	}
	took := time.Since(began)
	a.meters.Applied(took)
	a.log.Debug("plan put into force", "took", took)
	return err
}

// stage writes the state beside the file that counts, while the kernel's tables are written; the function it returns waits for that.
// Nobody else is at the state meanwhile.
func (a *Agent) stage() func() (*state.Staged, error) {
	var next *state.Staged
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		next, err = a.store.Stage(a.state)
	}()
	return func() (*state.Staged, error) {
		<-done
		return next, err
	}
}

// keepNumbers has the state keep the numbers of the ports and uplinks there are; one that is gone gives its number back.
func (a *Agent) keepNumbers() {
	var numbers []state.Number
	for _, sw := range a.plan.Switches {
		for _, p := range sw.Ports {
			numbers = append(numbers, state.Number{ID: p.ID, Number: p.Number})
		}
		for _, u := range sw.Uplinks {
			numbers = append(numbers, state.Number{ID: u.ID, Number: u.Number})
		}
	}
	a.state.Numbers = numbers
}

// attach goes on attaching and detaching devices for a while.
func (a *Agent) attach(budget time.Duration) {
	waited := a.kernel.Unattached()
	left, err := a.kernel.Attach(budget)
	t := &a.attaching
	defer func() { a.lookAtNew(waited) }()
	// A thousand that fail, a few each turn, are a complaint a second; "heddle port show" has each one's reason.
	if err != nil && time.Since(t.complained) >= sweepEvery {
		t.complained = time.Now()
		a.complain("attach to the devices", err)
	}
	t.missing, t.left, t.most = a.kernel.Unattached(), left, max(t.most, left)
	if left > 0 {
		return
	}
	if t.most > 0 {
		a.log.Info("devices attached", "were waiting", t.most)
	}
	t.most = 0
	for _, w := range t.waiting {
		close(w)
	}
	t.waiting = nil
}

// attachFailed has what failed tried again.
func (a *Agent) attachFailed() {
	for _, err := range a.attaching.missing {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) { // the directory of the pins may be gone
				a.guardPins()
			}
			a.kernel.RetryAttach()
			a.attach(nextTurn)
			return
		}
	}
}

// moreToAttach is ready while devices wait.
func (a *Agent) moreToAttach() <-chan struct{} {
	if a.attaching.left == 0 {
		return nil
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

// whyNotAttached says why frames of the port do not reach the switch yet, "" when they do.
func (a *Agent) whyNotAttached(id plan.PortID) string {
	at, connected := a.applied.Attachments[id]
	if !connected {
		return ""
	}
	err, waits := a.attaching.missing[at.Ifindex]
	switch {
	case !waits:
		return ""
	case err != nil:
		return err.Error()
	}
	return "its device waits to be attached; each takes the kernel some 10 ms"
}

// doAttached runs f in the loop, waits for it, and then, while the loop goes on, until no device waits any more. A caller that
// gives up waiting changes nothing.
func (a *Agent) doAttached(ctx context.Context, f func() error) error {
	var done chan struct{}
	err := a.do(ctx, func() error {
		err := f()
		if err == nil && a.attaching.left > 0 {
			done = make(chan struct{})
			a.attaching.waiting = append(a.attaching.waiting, done)
		}
		return err
	})
	if err != nil || done == nil {
		return err
	}
	select {
	case <-done:
	case <-a.stopped:
	case <-ctx.Done():
	}
	return nil
}

// Progress is how far the attaching of devices is.
func (a *Agent) Progress(ctx context.Context) (out *api.Progress, err error) {
	err = a.do(ctx, func() error {
		out = &api.Progress{Attaching: a.attaching.left, Of: max(a.attaching.most, a.attaching.left)}
		if c := a.adoptions.journal.Change; c != nil {
			out.Trial = a.viewTrial(c)
		}
		return nil
	})
	return out, err
}

// timed runs a change and says when it was in force, counted from readAt (CLOCK_MONOTONIC of the command, 0 = from now).
func (a *Agent) timed(out *api.Applied, readAt int64, change func() error) error {
	now, err := dataplane.Monotonic()
	if err != nil {
		return err
	}
	if readAt <= 0 || readAt > now { // a client that does not say, or whose clock is another
		readAt = now
	}
	before := a.flip
	// A change of a thousand ports makes some megabytes of garbage; collecting it takes as long as the change itself, and can wait.
	collect := debug.SetGCPercent(-1)
	err = change()
	debug.SetGCPercent(collect)
	if err != nil {
		return err
	}
	if a.flip != before {
		out.InForceMs = float64(a.flip.After-readAt) / 1e6
		out.InForceAt = &api.Instant{Before: a.flip.Before, After: a.flip.After}
		a.log.Info("in force", slog.Float64("ms", out.InForceMs))
		a.littered = true
	}
	return nil
}
