package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

var _ api.Service = (*Agent)(nil)

// Apply replaces the configuration file's content; it owns what the file declares and nothing else.
func (a *Agent) Apply(ctx context.Context, q api.Apply) (out *api.Applied, err error) {
	cfg, err := spec.Parse(q.File, []byte(q.Content))
	if err != nil {
		var faults spec.Faults
		if errors.As(err, &faults) {
			return nil, api.NewError(api.Invalid, faultLines(faults)...)
		}
		return nil, err
	}
	err = a.doAttached(ctx, func() error {
		src := Source{File: q.File, Content: q.Content, Seen: a.seenNow()}
		out, err = a.apply(cfg, src, q)
		return err
	})
	return out, err
}

// seenNow is the digest of the --config file as it is now: an apply is newer than every edit before it. A file that cannot be
// read leaves it as it was.
func (a *Agent) seenNow() string {
	if a.configFile != "" {
		if b, err := os.ReadFile(a.configFile); err == nil {
			return digest(b)
		}
	}
	return a.state.Config.Seen
}

// Connect makes a port. The same port once more is no error, so that a hook may run twice.
func (a *Agent) Connect(ctx context.Context, p spec.Port) (out *api.Applied, err error) {
	err = a.doAttached(ctx, func() error {
		if p.Switch == "" && a.file != nil && len(a.file.Switches) == 1 {
			p.Switch = a.file.Switches[0].Name
		}
		out = &api.Applied{Changes: []api.Change{}}
		if have := a.runTime(p.Name); have != nil && reflect.DeepEqual(*have, p) {
			return nil
		}
		if d := a.runTime(p.Name); d != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is connected already: disconnect it first (heddle port disconnect %q)", p.Name, p.Name))
		}
		err := a.timed(out, 0, func() error {
			return a.change(func() { a.state.Ports = append(slices.Clip(a.state.Ports), p) })
		})
		if err != nil {
			return err
		}
		out.Changes = append(out.Changes, api.Change{Kind: api.Added, Object: "port " + p.Name})
		id := plan.PortID{Switch: p.Switch, Name: p.Name}
		why := a.problems[id]
		if err := a.attaching.missing[a.applied.Attachments[id].Ifindex]; err != nil {
			why = err.Error()
		}
		if why != "" {
			out.Warnings = []string{fmt.Sprintf("port %s: %s", p.Name, why)}
		}
		return nil
	})
	return out, err
}

// Disconnect ends a port that was connected by command.
func (a *Agent) Disconnect(ctx context.Context, q api.Disconnect) error {
	return a.doAttached(ctx, func() error {
		i := slices.IndexFunc(a.state.Ports, func(p spec.Port) bool { return p.Name == q.Port })
		if i < 0 && a.declared(q.Port) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take it out there and apply the file, or block it (heddle port block %q)", q.Port, a.state.Config.File, q.Port))
		}
		if i < 0 {
			return noPort(q.Port)
		}
		return a.change(func() { a.state.Ports = slices.Delete(slices.Clone(a.state.Ports), i, i+1) })
	})
}

func noPort(name string) error {
	return api.NewError(api.NotFound, fmt.Sprintf("there is no port %q: see \"heddle port list\"", name))
}

// Block sets or lifts the blocked state of one port (S41), where its port group lets a port do that (S9).
func (a *Agent) Block(ctx context.Context, q api.Block) (*api.Applied, error) {
	out := &api.Applied{Changes: []api.Change{}}
	return out, a.do(ctx, func() error {
		if a.declared(q.Port) == nil && a.runTime(q.Port) == nil {
			return noPort(q.Port)
		}
		if p := planned(a.plan, q.Port); p != nil && p.Policy.Blocked.V == q.Blocked {
			return nil
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
func (a *Agent) blockedUnder(port string, o Override) (bool, error) {
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
	out := &api.Applied{Changes: []api.Change{}}
	return out, a.do(ctx, func() error {
		var from string
		if p := planned(a.plan, q.Port); p != nil {
			from = p.PortGroup
		}
		if from == q.PortGroup {
			return nil
		}
		edit := a.moves(q)
		if edit == nil {
			return noPort(q.Port)
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
	a.quit()
	return nil
}
