package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Attaching a device takes the kernel some 10 ms. So that a thousand of them do not keep commands and failures waiting,
// it is done in turns of the loop.
const (
	// within a command or a notification: a handful of devices is attached when it returns
	firstTurn = 250 * time.Millisecond
	nextTurn  = 50 * time.Millisecond
)

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

// attach goes on attaching and detaching devices for a while.
func (t *attaching) attach(budget time.Duration) {
	waited := t.kernel.Unattached()
	left, err := t.kernel.Attach(budget)
	defer func() { t.attached(waited) }()
	// Log one summary of the failed ports: a thousand that fail, a few each turn, would be a complaint a second.
	// "heddle port show" has the reason of each.
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

// attachFailed makes failed attachments be tried again.
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

// whyNotAttached says why frames of the port do not reach the switch yet, none when they do.
func (t *attaching) whyNotAttached(id plan.PortID) problem.Problem {
	at, connected := t.effect.applied.Attachments[id]
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

// whyNotServed is what stands against a port that is in the plan, none for nothing.
func (t *attaching) whyNotServed(id plan.PortID) problem.Problem {
	if err := t.missing[t.effect.applied.Attachments[id].Ifindex]; err != nil {
		return problem.Failed(problem.AttachFailed, "", err)
	}
	return t.effect.problems[id]
}

// doAttached runs f in the loop, waits for it, and then, while the loop goes on, until no device waits any more. A
// caller that gives up waiting changes nothing.
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

// guardPins puts back what somebody removed from the pin directory, such as a cleaner of temporary files: without it
// the switch would stop with this process.
func (t *attaching) guardPins() {
	if err := t.mount(); err != nil {
		t.complain("keep the kernel's objects pinned", err)
		return
	}
	missing, err := t.kernel.Repin()
	if missing > 0 {
		t.log.Warn("somebody removed pinned kernel objects; they were put back", "missing", missing)
	}
	if err != nil {
		t.complain("keep the kernel's objects pinned", err)
	}
}
