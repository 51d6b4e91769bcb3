package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// Connect makes a port. Connecting the same port again is no error, so that a hook may run twice.
func (c *commands) Connect(ctx context.Context, q api.Connect) (*api.Applied, error) {
	return c.connect(ctx, q, func(p spec.Port) ([]spec.Port, []api.Change, error) {
		if have := c.connected.port(p.Name); have != nil && c.connected.comesAnew(*have, p) {
			return c.connected.replacing(p)
		} else if have != nil {
			return nil, nil, api.NewError(api.Invalid, fmt.Sprintf("port %s is connected already: disconnect it "+
				"first (heddle port disconnect %s)", p.Name, printable.ShellWord(p.Name)))
		}
		return append(slices.Clip(c.state.Ports), p), []api.Change{{Kind: api.Added, Object: portRef(p)}}, nil
	})
}

// Reconnect makes a port and removes the run-time port of that name and the port that has its device, all or nothing.
// Hooks need this: a hook runs when a guest has just been given the device, so whoever else claims the device is a
// guest that died unseen.
func (c *commands) Reconnect(ctx context.Context, q api.Connect) (*api.Applied, error) {
	refuses := func(p spec.Port) error { return (owned{c.shared}).another(p, q.VM) }
	if is, forced := c.isExpected(ctx, q); is {
		return c.connectIncoming(ctx, api.Incoming{Connect: q, Force: forced}, func(p spec.Port) error {
			judge := taking{c.shared, c.connected, c.ports, api.Incoming{Connect: q}, false}
			return errors.Join(refuses(p), judge.refusesMAC(p))
		})
	}
	return c.connect(ctx, q, func(p spec.Port) ([]spec.Port, []api.Change, error) {
		if err := refuses(p); err != nil {
			return nil, nil, err
		}
		return c.connected.replacing(p)
	})
}

// connect makes a port, unless it exists as requested; with returns the run-time ports after the change.
func (c *commands) connect(ctx context.Context, q api.Connect, with func(spec.Port) ([]spec.Port, []api.Change,
	error)) (*api.Applied, error) {
	out := &api.Applied{}
	nic, err := c.statics.Claim(ctx, q, false)
	if err != nil {
		return nil, err
	}
	defer c.statics.Claimed(nic)
	return out, c.trials.tried(ctx, c.attaching.doAttached, &guard{what: "port connect " + q.Name,
		within: q.ConfirmWithin}, out, c.looking(q.Device, func() error {
		p := q.Port
		if p.Switch == "" {
			p.Switch = c.ports.onlySwitch()
		}
		set := p.Policy
		p = c.ports.withKept(p)
		if nic != nil {
			p.MAC = cmp.Or(p.MAC, nic.MAC)
		}
		with := with
		if have := c.connected.port(p.Name); have != nil && reflect.DeepEqual(c.arrivals.whole(*have), p) {
			if (owned{c.shared}).hasTaken(*have) {
				return c.statics.Again(nic)
			}
			with = c.connected.replacing // its VM has another device by now
		}
		if c.ports.declared(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take another name, or take it "+
				"out there first", p.Name, c.ports.declarer(p.Name)))
		}
		if c.records.adopted(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s has the host's own addresses: give them back first "+
				"(heddle host-port release %s)", p.Name, printable.ShellWord(p.Name)))
		}
		err := c.connectAs(out, p, set, nic, with)
		if set != p.Policy && unfit(err) { // the guest starts even so
			p.Policy = set
			out.Warnings = append(out.Warnings, keptUnfit(p.Name))
			err = c.connectAs(out, p, set, nic, with)
		}
		if err != nil {
			return err
		}
		if why := c.attaching.whyNotServed(plan.PortID{Switch: p.Switch, Name: p.Name}); !why.None() {
			out.Warnings = append(out.Warnings, fmt.Sprintf("port %s: %s", p.Name, why.Text()))
		}
		c.chains.warnBefore(out, plan.PortID{Switch: p.Switch, Name: p.Name})
		c.statics.Warn(out, nic)
		return nil
	}))
}

// connectAs makes the port; set is the policy that this command sets on it, nic whose it is.
func (c *commands) connectAs(out *api.Applied, p spec.Port, set spec.Policy, nic *state.NIC,
	with func(spec.Port) ([]spec.Port, []api.Change, error)) error {
	ports, changes, err := with(p)
	if err != nil {
		return err
	}
	if err := c.effect.timed(out, 0, func() error {
		connects := c.ports.connects(p, ports, set)
		return c.changer.change(func() {
			connects()
			(owned{c.shared}).gives(p, nic, false)
			c.statics.Connected(p.Name, nic)
		})
	}); err != nil {
		return err
	}
	out.Changes = changes
	return nil
}

// invalid reports whether the request itself is wrong.
func invalid(err error) bool {
	var answer *api.Error
	return errors.As(err, &answer) && answer.Kind == api.Invalid
}

// unfit reports whether the request is wrong or names something that does not exist.
func unfit(err error) bool {
	var answer *api.Error
	return invalid(err) || errors.As(err, &answer) && answer.Kind == api.NotFound
}

// disconnects returns the edit that removes the run-time port at index i.
func (ps *ports) disconnects(i int, reset bool) func() {
	return func() {
		if !reset {
			ps.keepOwn(ps.state.Ports[i])
		}
		ps.connected.ends(ps.state.Ports[i])
		ps.state.Ports = slices.Delete(slices.Clone(ps.state.Ports), i, i+1)
	}
}

// Disconnect removes a port that was connected by command.
func (c *commands) Disconnect(ctx context.Context, q api.Disconnect) error {
	return c.disconnectIf(ctx, q, func(spec.Port) error { return nil })
}

// disconnectIf removes a port that was connected by command unless refuses says why it must stay: it is asked in the
// turn of the loop in which the port is removed, of what the port is then.
func (c *commands) disconnectIf(ctx context.Context, q api.Disconnect, refuses func(spec.Port) error) error {
	var was *state.NIC
	err := c.disconnect(ctx, q, &was, refuses)
	if err != nil || !q.Release {
		return err
	}
	return c.statics.Release(ctx, was)
}

// disconnect ends the port; was gets whose it was.
func (c *commands) disconnect(ctx context.Context, q api.Disconnect, was **state.NIC,
	refuses func(spec.Port) error) error {
	return c.trials.tried(ctx, c.attaching.doAttached,
		&guard{what: "port disconnect " + cmp.Or(q.Port, "--device "+q.Device), within: q.ConfirmWithin},
		&api.Applied{}, func() error {
			is := func(p spec.Port) bool { return p.Name == q.Port }
			if q.Port == "" {
				is = func(p spec.Port) bool { return p.Device != "" && p.Device == q.Device }
			}
			i := slices.IndexFunc(c.state.Ports, is)
			if i >= 0 && q.VM != "" && !strings.EqualFold((owned{c.shared}).vmOf(c.state.Ports[i]), q.VM) {
				return api.NewError(api.NotFound, fmt.Sprintf("port %s is not of VM %s: it stays",
					c.state.Ports[i].Name, printable.Text(q.VM)))
			}
			if i >= 0 && c.records.adopted(c.state.Ports[i].Name) != nil {
				name := c.state.Ports[i].Name
				return api.NewError(api.Invalid, fmt.Sprintf("port %s has the host's own addresses: give them back "+
					"first (heddle host-port release %s)", name, printable.ShellWord(name)))
			}
			if i >= 0 {
				if err := refuses(c.state.Ports[i]); err != nil {
					return err
				}
				name := c.state.Ports[i].Name
				*was = c.state.NICOf(name)
				ends := c.ports.disconnects(i, q.Reset)
				return c.changer.change(func() {
					if ends(); q.Release {
						c.statics.GivesUp(*was)
						c.definition.Release(name)
					}
				})
			}
			if p := c.ports.findDeclared(is); p != nil {
				return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take it out there, or block "+
					"it (heddle port block %s)", p.Name, c.ports.declarer(p.Name), printable.ShellWord(p.Name)))
			}
			if q.Port == "" {
				n := known.Names{What: "port with the device"}
				for _, p := range c.state.Ports {
					n.All = append(n.All, p.Device)
				}
				return api.NewError(api.NotFound, n.Missing(q.Device))
			}
			return c.ports.noPort(q.Port)
		})
}
