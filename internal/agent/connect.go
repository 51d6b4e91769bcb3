package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Connect makes a port. The same port once more is no error, so that a hook may run twice.
func (a *Agent) Connect(ctx context.Context, q api.Connect) (*api.Applied, error) {
	return a.connect(ctx, q, func(p spec.Port) ([]spec.Port, []api.Change, error) {
		if have := a.runTime(p.Name); have != nil && a.comesAnew(*have, p) {
			return a.replacing(p)
		} else if have != nil {
			return nil, nil, api.NewError(api.Invalid, fmt.Sprintf("port %s is connected already: disconnect it first (heddle port disconnect %q)", p.Name, p.Name))
		}
		return append(slices.Clip(a.state.Ports), p), []api.Change{{Kind: api.Added, Object: "port " + p.Name}}, nil
	})
}

// Reconnect makes a port; the run-time port of that name and the one that has its device give way, all or nothing. It is what a
// hook needs: it runs when a guest has just been given the device, so that whoever else claims it is a guest that died unseen.
func (a *Agent) Reconnect(ctx context.Context, q api.Connect) (*api.Applied, error) {
	if a.isExpected(ctx, q.Name) {
		return a.ConnectIncoming(ctx, q)
	}
	return a.connect(ctx, q, a.replacing)
}

// connect makes a port, unless it is there as asked for; with gives the run-time ports there are to be then.
func (a *Agent) connect(ctx context.Context, q api.Connect, with func(spec.Port) ([]spec.Port, []api.Change, error)) (*api.Applied, error) {
	out := &api.Applied{}
	return out, a.tried(ctx, a.doAttached, &guard{what: "port connect " + q.Name, within: q.ConfirmWithin}, out, func() error {
		p := q.Port
		if p.Switch == "" && a.file != nil && len(a.file.Switches) == 1 {
			p.Switch = a.file.Switches[0].Name
		}
		set := p.Policy
		p = a.withKept(p)
		if have := a.runTime(p.Name); have != nil && reflect.DeepEqual(a.whole(*have), p) {
			return nil
		}
		if a.declared(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take another name, or take it out there and apply the file", p.Name, a.state.Config.File))
		}
		if a.adopted(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s has the host's own addresses: give them back first (heddle host-port release %s)", p.Name, p.Name))
		}
		err := a.connectAs(out, p, set, with)
		if set != p.Policy && invalid(err) { // a guest starts all the same
			p.Policy = set
			out.Warnings = append(out.Warnings, keptUnfit(p.Name))
			err = a.connectAs(out, p, set, with)
		}
		if err != nil {
			return err
		}
		if why := a.whyNotServed(plan.PortID{Switch: p.Switch, Name: p.Name}); why != "" {
			out.Warnings = append(out.Warnings, fmt.Sprintf("port %s: %s", p.Name, why))
		}
		a.warnBefore(out, plan.PortID{Switch: p.Switch, Name: p.Name})
		return nil
	})
}

// connectAs makes the port; set is what it sets for itself in this command.
func (a *Agent) connectAs(out *api.Applied, p spec.Port, set spec.Policy, with func(spec.Port) ([]spec.Port, []api.Change, error)) error {
	ports, changes, err := with(p)
	if err != nil {
		return err
	}
	if err := a.timed(out, 0, func() error { return a.change(a.connects(p, ports, set)) }); err != nil {
		return err
	}
	out.Changes = changes
	return nil
}

// whyNotServed is what stands against a port that is in the plan, "" for nothing.
func (a *Agent) whyNotServed(id plan.PortID) string {
	if err := a.attaching.missing[a.applied.Attachments[id].Ifindex]; err != nil {
		return err.Error()
	}
	return a.problems[id]
}

// invalid says whether what was asked for is wrong.
func invalid(err error) bool {
	var answer *api.Error
	return errors.As(err, &answer) && answer.Kind == api.Invalid
}

// replacing are the run-time ports with p in the place of those that have its name or its device.
func (a *Agent) replacing(p spec.Port) (ports []spec.Port, changes []api.Change, err error) {
	change := api.Change{Kind: api.Added, Object: "port " + p.Name}
	for _, other := range a.state.Ports {
		switch {
		case other.Name == p.Name:
			change.Kind = api.Changed
		case p.Device != "" && other.Device == p.Device:
			changes = append(changes, api.Change{Kind: api.Removed, Object: "port " + other.Name})
		default:
			ports = append(ports, other)
		}
	}
	return append(ports, p), append(changes, change), nil
}

// disconnects is the edit that ends the run-time port at i.
func (a *Agent) disconnects(i int, reset bool) func() {
	return func() {
		if !reset {
			a.keepOwn(a.state.Ports[i])
		}
		a.state.Ports = slices.Delete(slices.Clone(a.state.Ports), i, i+1)
	}
}

// Disconnect ends a port that was connected by command.
func (a *Agent) Disconnect(ctx context.Context, q api.Disconnect) error {
	return a.tried(ctx, a.doAttached, &guard{what: "port disconnect " + cmp.Or(q.Port, "--device "+q.Device), within: q.ConfirmWithin}, &api.Applied{}, func() error {
		is := func(p spec.Port) bool { return p.Name == q.Port }
		if q.Port == "" {
			is = func(p spec.Port) bool { return p.Device != "" && p.Device == q.Device }
		}
		i := slices.IndexFunc(a.state.Ports, is)
		if i >= 0 && a.adopted(a.state.Ports[i].Name) != nil {
			name := a.state.Ports[i].Name
			return api.NewError(api.Invalid, fmt.Sprintf("port %s has the host's own addresses: give them back first (heddle host-port release %s)", name, name))
		}
		if i >= 0 {
			return a.change(a.disconnects(i, q.Reset))
		}
		if a.file != nil {
			if i := slices.IndexFunc(a.file.Ports, is); i >= 0 {
				name := a.file.Ports[i].Name
				return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take it out there and apply the file, or block it (heddle port block %q)", name, a.state.Config.File, name))
			}
		}
		if q.Port == "" {
			return api.NewError(api.NotFound, fmt.Sprintf("no port has the device %q: see \"heddle port list\"", q.Device))
		}
		return noPort(q.Port)
	})
}
