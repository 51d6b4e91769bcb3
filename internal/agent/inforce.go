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

// effect is what the kernel does.
type effect struct {
	*shared
	ports *ports

	applied   *binding.Desired  // nil before anything is in force
	redo      bool              // what is applied was not applied whole
	flip      dataplane.Instant // when applied came into force
	littered  bool              // by a change since the last tick
	commanded bool              // the reconcile at hand is a command's, which is refused when it cannot be remembered
	problems  map[plan.PortID]string
}

// attaching is where the attaching and detaching of devices stands.
type attaching struct {
	*shared
	effect *effect
	mount  func() error // makes sure that there is a file system to pin in
	// attached looks at devices that have waited.
	attached func(waited map[uint32]error)

	left, most int
	missing    map[uint32]error // dataplane.Kernel.Unattached
	waiting    []chan struct{}  // closed when nothing is left
	complained time.Time
}

// putInForce makes the kernel do what is desired, for all ports at one instant, and the state file say so. The file is written
// beside the one that counts before that instant, so that a full disk refuses the change while nothing has happened yet, and
// replaces it right after: a crash in between leaves the old configuration for the next start, and what counts is never mixed. What
// nobody commanded, such as an uplink that is back, goes into force also when it cannot be written down.
func (ef *effect) putInForce(d binding.Desired) error {
	began := time.Now()
	ef.ports.keepNumbers()
	staged := ef.stage()
	at, err := ef.kernel.Change(d, func() error {
		if _, err := staged(); ef.commanded { // what links and guests do is not refused; save says so, and is tried again
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
	ef.log.Debug("plan put into force", "took", took)
	return err
}

// stage writes the state beside the file that counts, while the kernel's tables are written; the function it returns waits for that.
// Nobody else is at the state meanwhile.
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

// keepNumbers has the state keep the numbers of the ports and uplinks there are; one that is gone gives its number back.
func (ps *ports) keepNumbers() {
	var numbers []state.Number
	for _, sw := range ps.plan.Switches {
		for _, p := range sw.Ports {
			numbers = append(numbers, state.Number{ID: p.ID, Number: p.Number})
		}
		for _, u := range sw.Uplinks {
			numbers = append(numbers, state.Number{ID: u.ID, Number: u.Number})
		}
	}
	ps.state.Numbers = numbers
}

// attach goes on attaching and detaching devices for a while.
func (t *attaching) attach(budget time.Duration) {
	waited := t.kernel.Unattached()
	left, err := t.kernel.Attach(budget)
	defer func() { t.attached(waited) }()
	// A thousand that fail, a few each turn, are a complaint a second; "heddle port show" has each one's reason.
	if err != nil && time.Since(t.complained) >= sweepEvery {
		t.complained = time.Now()
		t.complain("attach to the devices", err)
	}
	t.missing, t.left, t.most = t.kernel.Unattached(), left, max(t.most, left)
	if left > 0 {
		return
	}
	if t.most > 0 {
		t.log.Info("devices attached", "were waiting", t.most)
	}
	t.most = 0
	for _, w := range t.waiting {
		close(w)
	}
	t.waiting = nil
}

// attachFailed has what failed tried again.
func (t *attaching) attachFailed() {
	for _, err := range t.missing {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) { // the directory of the pins may be gone
				t.guardPins()
			}
			t.kernel.RetryAttach()
			t.attach(nextTurn)
			return
		}
	}
}

// moreToAttach is ready while devices wait.
func (t *attaching) moreToAttach() <-chan struct{} {
	if t.left == 0 {
		return nil
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

// whyNotAttached says why frames of the port do not reach the switch yet, "" when they do.
func (t *attaching) whyNotAttached(id plan.PortID) string {
	at, connected := t.effect.applied.Attachments[id]
	if !connected {
		return ""
	}
	err, waits := t.missing[at.Ifindex]
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
func (t *attaching) doAttached(ctx context.Context, f func() error) error {
	var done chan struct{}
	err := t.do(ctx, func() error {
		err := f()
		if err == nil && t.left > 0 {
			done = make(chan struct{})
			t.waiting = append(t.waiting, done)
		}
		return err
	})
	if err != nil || done == nil {
		return err
	}
	select {
	case <-done:
	case <-t.stopped:
	case <-ctx.Done():
	}
	return nil
}

// Progress is how far the attaching of devices is.
func (c *commands) Progress(ctx context.Context) (out *api.Progress, err error) {
	err = c.do(ctx, func() error {
		out = &api.Progress{Attaching: c.attaching.left, Of: max(c.attaching.most, c.attaching.left)}
		if change := c.records.journal.Change; change != nil {
			out.Trial = c.trials.viewTrial(change)
		}
		return nil
	})
	return out, err
}

// timed runs a change and says when it was in force, counted from readAt (CLOCK_MONOTONIC of the command, 0 = from now).
func (ef *effect) timed(out *api.Applied, readAt int64, change func() error) error {
	now, err := dataplane.Monotonic()
	if err != nil {
		return err
	}
	if readAt <= 0 || readAt > now { // a client that does not say, or whose clock is another
		readAt = now
	}
	before := ef.flip
	// A change of a thousand ports makes some megabytes of garbage; collecting it takes as long as the change itself, and can wait.
	collect := debug.SetGCPercent(-1)
	err = change()
	debug.SetGCPercent(collect)
	if err != nil {
		return err
	}
	if ef.flip != before {
		out.InForceMs = float64(ef.flip.After-readAt) / 1e6
		out.InForceAt = &api.Instant{Before: ef.flip.Before, After: ef.flip.After}
		ef.log.Info("in force", slog.Float64("ms", out.InForceMs))
		ef.littered = true
	}
	return nil
}
