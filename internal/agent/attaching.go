package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Attaching a device takes the kernel some 10 ms. The loop does it in turns, so that a thousand devices do not delay
// commands and reactions to failures.
const (
	// the turn within a command or a notification: a handful of devices is attached when it returns
	firstTurn = 250 * time.Millisecond
	nextTurn  = 50 * time.Millisecond
)

// attaching keeps which devices have yet to be attached and detached.
type attaching struct {
	*shared
	mount func() error // mounts the file system for the pins unless it is mounted
	// attached is called with the devices that had waited, and the errors of those that failed.
	attached func(waited map[uint32]error)

	left, most int
	missing    map[uint32]error // dataplane.Kernel.Unattached
	waiting    []chan struct{}  // each is closed when no device waits
	complained time.Time
}

// attach continues to attach and detach devices until the budget is used up.
func (t *attaching) attach(budget time.Duration) {
	waited := t.kernel.Unattached()
	left, err := t.kernel.Attach(budget)
	defer func() { t.attached(waited) }()
	// Log one summary of the failed ports: a thousand that fail, a few each turn, would log a line every second.
	// "heddle port show" has the reason of each.
	if err != nil && time.Since(t.complained) >= sweepEvery {
		t.complained = time.Now()
		t.Complain("attach to the devices", err)
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

// attachFailed schedules another attempt for the attachments that failed.
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

// moreToAttach is ready while devices wait to be attached.
func (t *attaching) moreToAttach() <-chan struct{} {
	if t.left == 0 {
		return nil
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

// whyNotAttached returns why frames of the port do not reach the switch yet, none when they do.
func (t *attaching) whyNotAttached(id plan.PortID) problem.Problem {
	at, connected := t.Active().Applied.Attachments[id]
	if !connected {
		return problem.Problem{}
	}
	err, waits := t.missing[at.Ifindex]
	switch {
	case !waits:
		return problem.Problem{}
	case err != nil:
		return problem.Failed(problem.AttachFailed, "", err)
	}
	return problem.Of(problem.AttachQueued)
}

// whyNotServed returns the problem of a port that is in the plan, none if it is served.
func (t *attaching) whyNotServed(id plan.PortID) problem.Problem {
	if err := t.missing[t.Active().Applied.Attachments[id].Ifindex]; err != nil {
		return problem.Failed(problem.AttachFailed, "", err)
	}
	return t.Active().Problems[id]
}

// doAttached runs f in the loop and waits for it, and then, while the loop continues, waits until every device is
// attached. A caller that stops waiting changes nothing.
func (t *attaching) doAttached(ctx context.Context, f func() error) error {
	var done chan struct{}
	err := t.Do(ctx, func() error {
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
	case <-t.Stopped():
	case <-ctx.Done():
	}
	return nil
}

// guardPins restores what somebody removed from the pin directory, such as a cleaner of temporary files: without the
// pins the switch would stop with this process.
func (t *attaching) guardPins() {
	if err := t.mount(); err != nil {
		t.Complain("keep the kernel's objects pinned", err)
		return
	}
	missing, err := t.kernel.Repin()
	if missing > 0 {
		t.log.Warn("somebody removed pinned kernel objects; they were put back", "missing", missing)
	}
	if err != nil {
		t.Complain("keep the kernel's objects pinned", err)
	}
}
