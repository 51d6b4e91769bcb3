package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

var _ api.Service = (*Agent)(nil)

// Apply replaces the configuration file's content; it owns what the file declares and nothing else.
func (a *Agent) Apply(ctx context.Context, q api.Apply) (out *api.Applied, err error) {
	cfg, err := spec.ParseAfter(a.parsed.Load(), q.File, []byte(q.Content))
	if err != nil {
		var faults spec.Faults
		if errors.As(err, &faults) {
			return nil, api.NewError(api.Invalid, faultLines(faults)...)
		}
		return nil, err
	}
	if q.DryRun {
		return a.dryRun(ctx, cfg, q)
	}
	out = &api.Applied{}
	return out, a.tried(ctx, a.doAttached, &guard{what: "apply " + q.File, within: q.ConfirmWithin}, out, func() error {
		done, err := a.apply(cfg, state.Source{File: q.File, Content: q.Content, Seen: a.seenNow()}, q)
		if err == nil {
			*out = *done
		}
		return err
	})
}

// seenNow is the digest of the --config file as it is now: an apply is newer than every edit before it. A file that cannot be
// read leaves it as it was.
func (a *Agent) seenNow() string {
	if a.configFile != "" && isFile(a.configFile) == nil {
		if b, err := spec.ReadFile(a.configFile); err == nil {
			return digest(b)
		}
	}
	return a.state.Config.Seen
}

func noPort(name string) error {
	return api.NewError(api.NotFound, fmt.Sprintf("there is no port %q: see \"heddle port list\"", name))
}

// Block sets or lifts the blocked state of one port (S41), where its port group lets a port do that (S9).
func (a *Agent) Block(ctx context.Context, q api.Block) (*api.Applied, error) {
	what := "port unblock "
	if q.Blocked {
		what = "port block "
	}
	out := &api.Applied{}
	return out, a.tried(ctx, a.do, &guard{what: what + q.Port, within: q.ConfirmWithin}, out, func() (err error) {
		if a.declared(q.Port) == nil && a.runTime(q.Port) == nil {
			return noPort(q.Port)
		}
		defer func() {
			if p := planned(a.plan, q.Port); p != nil && q.Blocked && err == nil {
				a.warnBefore(out, p.ID)
			}
		}()
		if p := planned(a.plan, q.Port); p != nil && !q.Blocked {
			out.Warnings = a.retryLoop(p.ID)
		}
		if p := planned(a.plan, q.Port); p != nil && p.Policy.Blocked.V == q.Blocked {
			return nil
		}
		if err := a.cutsOff(q.Port); err != nil && q.Blocked {
			return err
		}
		o := a.state.Overrides[q.Port]
		o.Blocked = nil
		// No override is better than one that says what holds anyway.
		without, err := a.blockedUnder(q.Port, o)
		if err != nil {
			return err
		}
		if without != q.Blocked {
			o.Blocked = &q.Blocked
		}
		out.Changes = append(out.Changes, api.Change{Kind: api.Changed, Object: "port " + q.Port, Field: "blocked", Old: strconv.FormatBool(!q.Blocked), New: strconv.FormatBool(q.Blocked)})
		return a.timed(out, q.ReadAt, func() error { return a.change(func() { a.state.Overrides[q.Port] = o }) })
	})
}

// blockedUnder says whether the port would be blocked with that override.
func (a *Agent) blockedUnder(port string, o state.Override) (bool, error) {
	l := a.layers()
	l.overrides = maps.Clone(l.overrides)
	l.overrides[port] = o
	cfg, _ := l.merge()
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		return false, err
	}
	found := planned(p, port)
	return found != nil && found.Policy.Blocked.V, nil
}

// Move puts a port into another port group of its switch. A declared port keeps that until it is moved back or its owner
// disconnects (S10).
func (a *Agent) Move(ctx context.Context, q api.Move) (*api.Applied, error) {
	out := &api.Applied{}
	return out, a.tried(ctx, a.do, &guard{what: "port move " + q.Port, within: q.ConfirmWithin}, out, func() (err error) {
		defer func() {
			if p := planned(a.plan, q.Port); p != nil && err == nil {
				a.warnBefore(out, p.ID)
			}
		}()
		var from string
		if p := planned(a.plan, q.Port); p != nil {
			from = p.PortGroup
		}
		edit := a.moves(q)
		if edit == nil {
			return noPort(q.Port)
		}
		if from == q.PortGroup {
			return nil
		}
		if err := a.cutsOff(q.Port); err != nil {
			return err
		}
		out.Changes = append(out.Changes, api.Change{Kind: api.Changed, Object: "port " + q.Port, Field: "portGroup", Old: from, New: q.PortGroup})
		return a.timed(out, q.ReadAt, func() error { return a.change(edit) })
	})
}

// moves is the edit that moves the port, nil when there is no such port.
func (a *Agent) moves(q api.Move) func() {
	if p := a.runTime(q.Port); p != nil {
		moved := *p
		moved.PortGroup = q.PortGroup
		return func() {
			a.state.Ports = slices.Clone(a.state.Ports)
			*a.runTime(q.Port) = moved
		}
	}
	p := a.declared(q.Port)
	if p == nil {
		return nil
	}
	return func() {
		o := a.state.Overrides[q.Port]
		o.PortGroup = q.PortGroup
		if q.PortGroup == p.PortGroup {
			o.PortGroup = ""
		}
		a.state.Overrides[q.Port] = o
	}
}

// Stop ends the agent once this answer is on its way; the kernel goes on forwarding.
func (a *Agent) Stop(context.Context) error {
	a.log.Info("asked to stop")
	a.ordered.Store(true)
	a.quit()
	return nil
}
