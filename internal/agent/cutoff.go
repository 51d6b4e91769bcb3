package agent

import (
	"context"
	"fmt"
	"time"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostnet"
)

// A version of the controllers' definition that concerns the way to the host's own addresses may cut the host off from
// its controllers (S81). It is made and acknowledged at once; controllers are asked for a while whether they are still
// reached, and where none is at the end, the host goes back to the version before.

// Times of the questions.
const (
	askControllersEvery = time.Second
	askControllersTime  = 5 * time.Second
)

// askControllers asks outside of the loop until it is decided what becomes of the change.
func (tr *trials) askControllers(c *adopt.Change) {
	for {
		asked, err := hostnet.Boottime()
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), askControllersTime)
			err = tr.connection.Reach(ctx)
			cancel()
		}
		open := false
		stopped := tr.Do(context.Background(), func() error {
			if open = tr.records.journal.Change == c && c.Phase == adopt.Waiting; open {
				if err == nil {
					c.Answered = asked
				}
				tr.judgeChange()
			}
			return nil
		})
		if stopped != nil || !open {
			return
		}
		select {
		case <-time.After(askControllersEvery):
		case <-tr.Stopped():
			return
		}
	}
}

// settleControllers makes room for another change of the ways to the host's own addresses while one that came from a
// controller is tried. It stays where a controller has answered since; else the other one waits.
func (tr *trials) settleControllers() error {
	c := tr.records.journal.Change
	if c == nil {
		return nil
	}
	if c.Controllers && c.Answered > 0 {
		tr.keepChange(c)
	}
	if tr.records.journal.Change != nil {
		return &beingTried{tr.decided}
	}
	return nil
}

// keepControllers ends the trial of what came from a controller, for a command that gives the host's switches to
// another owner: there is nothing that it could go back to then.
func (tr *trials) keepControllers() {
	if c := tr.records.journal.Change; c != nil && c.Controllers && c.Phase == adopt.Waiting {
		c.Agreed = true
		tr.keepChange(c)
	}
}

// resumeControllers takes up such a change in an agent that has started again, ahead of the plan.
func (tr *trials) resumeControllers(c *adopt.Change, now time.Duration, here string) error {
	why, goesOn := c.Resume(now, here)
	if err := tr.records.journal.Save(); err != nil {
		return err
	}
	if goesOn {
		return nil
	}
	c.Phase, c.Reason = adopt.Reverting, why
	return tr.ports.undoIntent(c)
}

// forgetReverted forgets from which version the host went back before, as another one, or now the same, stays.
func (tr *trials) forgetReverted(c *adopt.Change) {
	if !c.Controllers || tr.definition.Reverted() == nil {
		return
	}
	tr.definition.Stay()
	if err := tr.ports.save(); err != nil {
		tr.Complain("forget that the host went back from a version", err)
	}
}

// triedBefore says why a version is not activated from which the host went back before; "" for others.
func triedBefore(next *state.Slice, r *state.Reverted) string {
	if r == nil || next.Forced || !r.Is(next.Set().Hash()) {
		return ""
	}
	return fmt.Sprintf("revision %d cut this host off from its controllers, and it went back (%s): change the "+
		"definition, or try it again with heddle host retry HOST at a controller", r.Revision, r.Why)
}
