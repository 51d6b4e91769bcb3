package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose/advise"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Advise finds what is misconfigured. The loop only hands out the active plan; the caller waits and computes.
func (an *answers) Advise(ctx context.Context, q api.AdviseRequest) (*api.Advice, error) {
	if q.For < 0 || q.For > api.MaxAdviseFor {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("measuring for %v: it is a time from 0 to %v", q.For,
			api.MaxAdviseFor))
	}
	s := &advise.Snapshot{}
	if err := an.measure(ctx, q.For, s); err != nil {
		return nil, err
	}
	err := an.do(ctx, func() (err error) {
		if s.Host, err = an.traceHost(); err == nil {
			s.State, s.Past = an.view(), an.pastNow()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Events, s.Now = an.kept(), time.Now()
	return advise.Examine(s), nil
}

// glance is how long rates are measured when nobody asks for a time: long enough for a flood to stand out of a burst,
// too short to wait for.
const glance = 500 * time.Millisecond

// measure reads the counters twice: before and after the time asked for, or a glance.
func (an *answers) measure(ctx context.Context, during time.Duration, s *advise.Snapshot) (err error) {
	var before []api.Stats
	var flows *api.FlowStatus
	began := time.Now()
	if before, err = an.Stats(ctx); err != nil {
		return err
	}
	if flows, err = an.flowing.FlowStatus(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(cmp.Or(during, glance)):
	case <-an.stopped:
		return errors.New("the agent ended while it measured")
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.Flows, err = an.flowing.FlowStatus(ctx); err != nil {
		return err
	}
	if s.Stats, err = an.Stats(ctx); err != nil {
		return err
	}
	s.RecentFor, s.Recent = time.Since(began), advise.Since(before, s.Stats)
	if during > 0 {
		s.Flows = advise.FlowsSince(flows, s.Flows)
		s.Window, s.Stats = s.RecentFor, s.Recent
	}
	return nil
}

// kept are the events that are kept.
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

// traceHost returns, in the loop, the active plan with what explains it.
func (an *answers) traceHost() (*trace.Host, error) {
	if an.effect.applied == nil {
		return nil, errors.New("nothing is active yet")
	}
	h := &trace.Host{Plan: copied(an.effect.applied.Plan), Facts: maps.Clone(an.effect.applied.Facts),
		NewModel: model.New, File: an.state.Config.File,
		RunTime: map[string]spec.Port{}, Groups: an.ports.traceGroups(), Waiting: map[plan.PortID]problem.Problem{}}
	for _, p := range an.state.Ports {
		h.RunTime[p.Name] = p
	}
	an.effect.eachMember(func(id plan.PortID) {
		if why := an.attaching.whyNotAttached(id); !why.None() {
			h.Waiting[id] = why
		} else if _, connected := an.effect.applied.Facts[id]; !connected {
			h.Waiting[id] = an.effect.problems[id]
		}
	})
	return h, nil
}
