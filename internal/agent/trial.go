package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/connection"
	"heddle/internal/agent/definition"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/host/reach"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
)

// trials puts changes of the path to the host's own addresses on trial. It holds what is known about the journal's
// change in addition to the journal.
type trials struct {
	*shared
	definition *definition.Part
	connected  *connected
	ports      *ports
	records    *records
	effect     *effect
	attaching  *attaching
	reconciler *reconciler

	guard   *guard        // of the present command; nil for what needs no trial (S81)
	decided chan struct{} // closed when the change stays or was undone
	last    *api.Trial    // the last one that was decided

	connection *connection.Connection
}

// lookEvery is how often the answers are checked: quickly at first, since most answers come at once.
const (
	lookEvery   = 20 * time.Millisecond
	lookLater   = 200 * time.Millisecond
	quicklyLook = 2 * time.Second
)

// watchChange begins to ask along the paths that the change affects.
func (tr *trials) watchChange(c *adopt.Change) {
	text := fmt.Sprintf("%q concerns the way to this host's own addresses (%s) and is tried: ", c.What,
		risksText(c.Risks))
	if c.Controllers {
		tr.publishTrial(event.Tried, c, text+fmt.Sprintf("it goes back where no controller answers any more after %s",
			c.Within.Round(time.Second)))
		go tr.askControllers(c)
		return
	}
	if len(c.Asks) == 0 {
		tr.publishTrial(event.Tried, c, text+fmt.Sprintf("it goes back unless it is confirmed within %s (heddle "+
			"confirm)", c.Within))
		return
	}
	tr.publishTrial(event.Tried, c, text+fmt.Sprintf("it goes back unless these answer within %s: %s", c.Within,
		asksText(c.Asks)))
	go tr.askAfter(c)
}

// askAfter asks, outside the loop, until it is decided whether the change stays.
func (tr *trials) askAfter(c *adopt.Change) {
	w, began := reach.NewWatch(tr.records.net, c.Asks), time.Now()
	for every := lookEvery; ; {
		asks, reached, err := w.Look(time.Now())
		open := false
		stopped := tr.Do(context.Background(), func() error {
			if open = tr.records.journal.Change == c && c.Phase == adopt.Waiting; open {
				c.Asks, c.Reached = asks, reached
				if err != nil {
					tr.Complain("ask whether this host is still reached", err)
				}
				tr.judgeChange()
			}
			return nil
		})
		if stopped != nil || !open || reached {
			return
		}
		if time.Since(began) > quicklyLook {
			every = lookLater
		}
		time.Sleep(every)
	}
}

// judgeChange keeps or undoes the change that is on trial once that is decided. It is called on every tick of the agent
// and for every answer.
func (tr *trials) judgeChange() {
	if tr.records.journal == nil || tr.records.journal.Change == nil {
		return
	}
	c := tr.records.journal.Change
	if c.Phase == adopt.Reverting {
		tr.takeChangeBack(c)
		return
	}
	now, err := hostnet.Boottime()
	if err != nil {
		tr.Complain("watch the change that is tried", err)
		return
	}
	switch verdict, why := c.Judge(now); verdict {
	case adopt.Keep:
		tr.keepChange(c)
	case adopt.Revert:
		c.Phase, c.Reason = adopt.Reverting, why
		tr.takeChangeBack(c)
	}
}

// keepChange makes the change permanent.
func (tr *trials) keepChange(c *adopt.Change) {
	tr.records.journal.Change = nil
	if err := tr.records.journal.Save(); err != nil { // tried again; otherwise the next agent would undo it
		tr.records.journal.Change = c
		tr.Complain("keep the change that was tried", err)
		return
	}
	why := "it was confirmed"
	switch {
	case c.Reached:
		why = "this host is reached: " + asksText(c.Asks)
	case c.Controllers && !c.Agreed:
		why = "a controller answers"
	}
	tr.forgetReverted(c)
	tr.decide(c, api.TrialKept, undone.Reason{})
	tr.publishTrial(event.Confirmed, c, fmt.Sprintf("%q stays: %s", c.What, why))
}

// decide tells those who wait whether the change stays or was undone.
func (tr *trials) decide(c *adopt.Change, state api.TrialState, why undone.Reason) {
	v := tr.viewTrial(c)
	v.State, v.Reason, v.ReasonCode, v.Deadline = state, why.Text(), why.Code, time.Time{}
	tr.last = v
	if tr.decided != nil {
		close(tr.decided)
		tr.decided = nil
	}
}

func (tr *trials) publishTrial(kind event.Kind, c *adopt.Change, text string) {
	tr.log.Info(text, "event", string(kind))
	e := event.Event{Kind: kind, Text: text}
	if len(c.Risks) > 0 {
		r := c.Risks[0]
		e.Device, e.Switch = r.Device, r.ID.Switch
		if r.Uplink {
			e.Uplink = r.ID.Name
		} else {
			e.Port = r.ID.Name
		}
	}
	tr.events.Publish(e)
}

func asksText(asks []reach.Ask) string {
	var texts []string
	for _, k := range asks {
		texts = append(texts, k.String())
	}
	return strings.Join(texts, ", ")
}

func (tr *trials) left(c *adopt.Change) time.Duration {
	now, err := hostnet.Boottime()
	if err != nil {
		return 0
	}
	return c.Left(now)
}

func (tr *trials) viewTrial(c *adopt.Change) *api.Trial {
	v := &api.Trial{State: api.TrialAsking, Change: c.What, AtRisk: c.Risks, Asked: append([]reach.Ask{}, c.Asks...),
		Reason: c.Reason.Text(), ReasonCode: c.Reason.Code, Deadline: adopt.Deadline(tr.left(c))}
	if len(c.Asks) == 0 && !c.Controllers {
		v.State = api.TrialConfirm
	}
	return v
}

// awaitDecision waits until it is decided whether the command's change stays, if somebody is asked.
func (tr *trials) awaitDecision(ctx context.Context, g *guard, out *api.Applied) error {
	c := g.change
	if c == nil || c.Controllers { // the host may be cut off from who waits
		return nil
	}
	var decided <-chan struct{}
	err := tr.Do(ctx, func() error {
		if open := tr.records.journal.Change == c; open && len(c.Asks) == 0 {
			out.Trial = tr.viewTrial(c)
		} else if open {
			decided = tr.decided
		}
		return nil
	})
	if err != nil || out.Trial != nil {
		return err
	}
	if decided != nil {
		select {
		case <-decided:
		case <-tr.Stopped():
			return fmt.Errorf("the agent is stopping; the next one decides whether %q stays", c.What)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return tr.Do(ctx, func() error {
		last := tr.last
		if last == nil {
			return errors.New("what became of the change is not known: see \"heddle events\"")
		}
		if out.Trial = last; last.State == api.TrialReverted {
			return revertedError(last)
		}
		return nil
	})
}

// revertedError is a command's error if its change was undone.
func revertedError(t *api.Trial) error {
	e := api.NewError(api.Reverted, fmt.Sprintf("%q was taken back, everything is as it was before: it cut off the "+
		"way to this host's own addresses (%s)", t.Change, risksText(t.AtRisk)), t.Reason)
	e.Trial = t
	return e
}

// Trial returns the change that is on trial, or the last one.
func (tr *trials) Trial(ctx context.Context) (out *api.Trial, err error) {
	return out, tr.Do(ctx, func() error {
		out = tr.last
		if c := tr.records.journal.Change; c != nil {
			out = tr.viewTrial(c)
		}
		if out == nil {
			return noTrial()
		}
		return nil
	})
}

func noTrial() error {
	return api.NewError(api.NotFound, "no change waits to be confirmed: see \"heddle events\" for what became of the "+
		"last one")
}

// ConfirmChange keeps the change that is on trial.
func (tr *trials) ConfirmChange(ctx context.Context) (out *api.Trial, err error) {
	return out, tr.Do(ctx, func() error {
		c := tr.records.journal.Change
		if c == nil || c.Phase != adopt.Waiting {
			return noTrial()
		}
		c.Agreed = true
		tr.judgeChange()
		if tr.records.journal.Change == c {
			c.Agreed = false
			return fmt.Errorf("%q could not be confirmed: %s", c.What, tr.Complaint())
		}
		out = tr.last
		return nil
	})
}
