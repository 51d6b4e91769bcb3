package agent

import (
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
	"heddle/internal/spec"
)

// Advise says what is misconfigured. The loop only gives what is in force; waiting and thinking are the caller's.
func (a *Agent) Advise(ctx context.Context, q api.AdviseRequest) (*api.Advice, error) {
	if q.For < 0 || q.For > api.MaxAdviseFor {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("measuring for %v: it is a time from 0 to %v", q.For, api.MaxAdviseFor))
	}
	s := &advise.Snapshot{}
	if err := a.measure(ctx, q.For, s); err != nil {
		return nil, err
	}
	err := a.do(ctx, func() (err error) {
		if s.Host, err = a.traceHost(); err == nil {
			s.State = a.view()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Events, s.Now = a.kept(), time.Now()
	return advise.Examine(s), nil
}

// measure reads the counters, twice when it is for a time.
func (a *Agent) measure(ctx context.Context, during time.Duration, s *advise.Snapshot) (err error) {
	var before []api.Stats
	var flows *api.FlowStatus
	began := time.Now()
	if during > 0 {
		if before, err = a.Stats(ctx); err != nil {
			return err
		}
		if flows, err = a.FlowStatus(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(during):
		case <-a.stopped:
			return errors.New("the agent ended while it measured")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.Flows, err = a.FlowStatus(ctx); err != nil {
		return err
	}
	if s.Stats, err = a.Stats(ctx); err != nil || during == 0 {
		return err
	}
	s.Flows = advise.FlowsSince(flows, s.Flows)
	s.Window, s.Stats = time.Since(began), advise.Since(before, s.Stats)
	return nil
}

// kept are the events that are kept.
func (a *Agent) kept() (all []event.Event) {
	last := a.events.Last()
	for after := uint64(0); after < last; {
		list, _, err := a.events.After(context.Background(), after)
		if err != nil || len(list) == 0 {
			break
		}
		all, after = append(all, list...), list[len(list)-1].Seq
	}
	return all
}

// traceHost is, in the loop, the plan in force with what explains it.
func (a *Agent) traceHost() (*trace.Host, error) {
	if a.applied == nil {
		return nil, errors.New("nothing is in force yet")
	}
	h := &trace.Host{Plan: copied(a.applied.Plan), Facts: maps.Clone(a.applied.Facts), NewModel: model.New, File: a.state.Config.File,
		RunTime: map[string]spec.Port{}, Groups: a.traceGroups(), Waiting: map[plan.PortID]string{}}
	for _, p := range a.state.Ports {
		h.RunTime[p.Name] = p
	}
	a.eachMember(func(id plan.PortID) {
		if why := a.whyNotAttached(id); why != "" {
			h.Waiting[id] = why
		} else if _, connected := a.applied.Facts[id]; !connected {
			h.Waiting[id] = a.problems[id]
		}
	})
	return h, nil
}
