package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"heddle/internal/agent/bypass"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/diagnose/advise"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Advise finds what is misconfigured. The loop only hands out the active plan; the caller's goroutine waits and
// computes.
func (an *answers) Advise(ctx context.Context, q api.AdviseRequest) (*api.Advice, error) {
	if q.For < 0 || q.For > api.MaxAdviseFor {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("measuring for %v: it is a time from 0 to %v", q.For,
			api.MaxAdviseFor))
	}
	if q.Since < 0 {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("findings seen in the last %v: it is a time above 0",
			q.Since))
	}
	s := &advise.Snapshot{Since: cmp.Or(q.Since, api.AdviseSince), All: q.All}
	before, err := an.measure(ctx, cmp.Or(q.For, glance))
	if err != nil {
		return nil, err
	}
	if err := an.sight(ctx, everyDevice, s); err != nil {
		return nil, err
	}
	s.RecentFor, s.Recent = time.Since(before.at), advise.Since(before.stats, s.Stats)
	if q.For > 0 {
		s.Flows = advise.FlowsSince(before.flows, s.Flows)
		s.Window, s.Stats = s.RecentFor, s.Recent
	}
	err = an.Do(ctx, func() (err error) {
		if s.Host, err = an.traceHost(); err == nil {
			s.State, s.Past = an.view(), bypass.All(an.dev, an.Active().Config)
			s.Seen, s.Absent = an.dated.ledger.Seen(), an.dated.ledger.Absent()
			s.Abilities, err = an.devicesToAsk()
		}
		return err
	})
	if err == nil {
		err = an.ask(s.Abilities)
	}
	if err != nil {
		return nil, err
	}
	if s.Membership, err = an.inCluster.Membership(ctx); err != nil {
		return nil, err
	}
	s.Events, s.Now, s.StateFault = an.kept(), time.Now(), state.Fault(an.stateDir)
	return advise.Examine(s), nil
}

// glance is how long rates are measured if the request gives no time: long enough to tell a flood from a burst, and
// short enough not to be noticed as a wait.
const glance = 500 * time.Millisecond

// reading is the values of the counters at one time.
type reading struct {
	at    time.Time
	stats []api.Stats
	flows *api.FlowStatus
}

// measure reads the counters, waits for the time of the measurement, and reads them again.
func (an *answers) measure(ctx context.Context, during time.Duration) (r reading, err error) {
	r.at = time.Now()
	if r.stats, err = an.Stats(ctx); err != nil {
		return r, err
	}
	if r.flows, err = an.flowing.FlowStatus(ctx); err != nil {
		return r, err
	}
	select {
	case <-time.After(during):
	case <-an.Stopped():
		return r, errors.New("the agent ended while it measured")
	case <-ctx.Done():
		return r, ctx.Err()
	}
	return r, nil
}

// kept returns the events that are kept.
func (an *answers) kept() (all []event.Event) {
	last := an.events.Last()
	for after := uint64(0); after < last; {
		list, _, err := an.events.After(context.Background(), after)
		if err != nil || len(list) == 0 {
			break
		}
		all, after = append(all, list...), list[len(list)-1].Seq
	}
	return all
}

// traceHost returns, in the loop, the active plan and the state that explains it.
func (an *answers) traceHost() (*trace.Host, error) {
	if an.Active().Applied == nil {
		return nil, errors.New("nothing is active yet")
	}
	now := an.Active()
	h := &trace.Host{Plan: copied(now.Applied.Plan), Facts: maps.Clone(now.Applied.Facts),
		Reach:    maps.Clone(now.Applied.Reach),
		NewModel: model.New, File: an.state.Config.File,
		RunTime: map[string]spec.Port{}, ByCommand: map[string]trace.ByCommand{},
		Groups: traceGroups(now.Config),
		Silent: an.silent(), Waiting: map[plan.PortID]problem.Problem{}}
	for _, p := range an.state.Ports {
		h.RunTime[p.Name] = p
	}
	for name, o := range an.state.Overrides {
		by := trace.ByCommand{Blocked: o.Blocked != nil}
		if p := an.ports.declared(name); p != nil && o.PortGroup != "" {
			by.PortGroup = p.PortGroup
		}
		h.ByCommand[name] = by
	}
	for _, id := range now.Members() {
		if why := an.attaching.whyNotAttached(id); !why.None() {
			h.Waiting[id] = why
		} else if _, connected := now.Applied.Facts[id]; !connected {
			h.Waiting[id] = now.Problems[id]
		}
	}
	return h, nil
}
