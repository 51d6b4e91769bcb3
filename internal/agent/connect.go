package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Connect makes a port. The same port once more is no error, so that a hook may run twice.
func (a *Agent) Connect(ctx context.Context, p spec.Port) (*api.Applied, error) {
	return a.connect(ctx, p, func(p spec.Port) ([]spec.Port, []api.Change, error) {
		if a.runTime(p.Name) != nil {
			return nil, nil, api.NewError(api.Invalid, fmt.Sprintf("port %s is connected already: disconnect it first (heddle port disconnect %q)", p.Name, p.Name))
		}
		return append(slices.Clip(a.state.Ports), p), []api.Change{{Kind: api.Added, Object: "port " + p.Name}}, nil
	})
}

// Reconnect makes a port; the run-time port of that name and the one that has its device give way, all or nothing. It is what a
// hook needs: it runs when a guest has just been given the device, so that whoever else claims it is a guest that died unseen.
func (a *Agent) Reconnect(ctx context.Context, p spec.Port) (*api.Applied, error) {
	return a.connect(ctx, p, a.replacing)
}

// connect makes a port, unless it is there as asked for; with gives the run-time ports there are to be then.
func (a *Agent) connect(ctx context.Context, p spec.Port, with func(spec.Port) ([]spec.Port, []api.Change, error)) (out *api.Applied, err error) {
	err = a.doAttached(ctx, func() error {
		if p.Switch == "" && a.file != nil && len(a.file.Switches) == 1 {
			p.Switch = a.file.Switches[0].Name
		}
		out = &api.Applied{Changes: []api.Change{}}
		if have := a.runTime(p.Name); have != nil && reflect.DeepEqual(*have, p) {
			return nil
		}
		if a.declared(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take another name, or take it out there and apply the file", p.Name, a.state.Config.File))
		}
		if a.adopted(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s has the host's own addresses: give them back first (heddle host-port release %s)", p.Name, p.Name))
		}
		ports, changes, err := with(p)
		if err != nil {
			return err
		}
		err = a.timed(out, 0, func() error { return a.change(func() { a.state.Ports = ports }) })
		if err != nil {
			return err
		}
		out.Changes = changes
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

// Disconnect ends a port that was connected by command.
func (a *Agent) Disconnect(ctx context.Context, q api.Disconnect) error {
	return a.doAttached(ctx, func() error {
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
			return a.change(func() { a.state.Ports = slices.Delete(slices.Clone(a.state.Ports), i, i+1) })
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
