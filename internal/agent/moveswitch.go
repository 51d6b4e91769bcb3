package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// switchOf fills in what a move leaves out, and reports whether the port is bound anew: it goes to another switch, or
// is a VM's and goes to another port group.
func (c *commands) switchOf(ctx context.Context, q *api.Move) (anew bool, err error) {
	err = c.Do(ctx, func() error {
		p := planned(c.Active().Plan, q.Port)
		switch {
		case p == nil && q.PortGroup == "":
			return c.ports.noPort(q.Port)
		case p == nil:
			return nil
		}
		if err := c.meant().refuses(q.Port, q.Of); err != nil {
			return err
		}
		across := q.Switch != "" && q.Switch != p.ID.Switch
		q.Switch, q.PortGroup = cmp.Or(q.Switch, p.ID.Switch), cmp.Or(q.PortGroup, p.PortGroup)
		anew = across || q.PortGroup != p.PortGroup && c.state.NICOf(q.Port) != nil && c.connected.port(q.Port) != nil
		return nil
	})
	return anew, err
}

// moveAcross puts a run-time port into a port group, of another switch or its own, in one change of the plan: the
// device stays attached, and the port keeps its number and its counters.
func (c *commands) moveAcross(ctx context.Context, q api.Move) (*api.Applied, error) {
	nic, err := c.claimAcross(ctx, q)
	if err != nil {
		return nil, err
	}
	defer c.statics.Claimed(nic)
	out := &api.Applied{}
	return out, c.trials.tried(ctx, c.Do, &guard{what: "port move " + q.Port, within: q.ConfirmWithin}, out,
		func() error {
			p, err := c.crosses(q)
			if err != nil {
				return err
			}
			was, now := plan.PortID{Switch: p.Switch, Name: p.Name}, plan.PortID{Switch: q.Switch, Name: p.Name}
			if was == now && p.PortGroup == q.PortGroup { // meanwhile
				return nil
			}
			moved, group := *p, p.PortGroup
			moved.Switch, moved.PortGroup = q.Switch, q.PortGroup
			if nic != nil {
				moved.MAC = cmp.Or(moved.MAC, nic.MAC)
			}
			err = c.effect.timed(out, q.ReadAt, func() error {
				return c.renaming(was, now, func() {
					c.state.Ports = slices.Clone(c.state.Ports)
					*c.connected.port(p.Name) = moved
					c.statics.Connected(p.Name, nic)
				})
			})
			if err != nil {
				return err
			}
			out.Changes = acrossChanges(was, now, group, q.PortGroup)
			if why := c.attaching.whyNotServed(now); !why.None() {
				out.Warnings = append(out.Warnings, fmt.Sprintf("port %s: %s", p.Name, why.Text()))
			}
			c.chains.warnBefore(out, now)
			c.statics.Warn(out, nic)
			return nil
		})
}

func acrossChanges(was, now plan.PortID, fromGroup, toGroup string) []api.Change {
	about := api.ObjectRef{Kind: api.PortObject, Switch: now.Switch, Name: now.Name}
	var list []api.Change
	if was.Switch != now.Switch {
		list = append(list, api.Change{Kind: api.Changed, Object: about, Field: "switch",
			Old: plan.FieldValueOf(was.Switch), New: plan.FieldValueOf(now.Switch)})
	}
	if fromGroup != toGroup {
		list = append(list, api.Change{Kind: api.Changed, Object: about, Field: "portGroup",
			Old: plan.FieldValueOf(fromGroup), New: plan.FieldValueOf(toGroup)})
	}
	return list
}

// crosses is the port of a move if it can go there; otherwise the error says why not.
func (c *commands) crosses(q api.Move) (*spec.Port, error) {
	name := q.Port
	if err := c.meant().refuses(name, q.Of); err != nil {
		return nil, err
	}
	p := c.connected.port(name)
	switch {
	case p != nil && p.Switch == q.Switch:
		return p, nil
	case p == nil:
		if c.ports.declared(name) != nil {
			return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: give it another switch there",
				name, c.ports.declarer(name)))
		}
		return nil, c.ports.noPort(name)
	case p.Role == spec.Host || c.records.adopted(name) != nil:
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s is a host port, which does not go to another "+
			"switch while it runs: disconnect it (heddle port disconnect %s), and connect it there", name,
			printable.ShellWord(name)))
	}
	if w := c.state.WaitOf(plan.PortID{Switch: p.Switch, Name: name}); w != nil && !w.Awake {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s is moving between hosts (%s): wait until its guest "+
			"runs here, or disconnect the port", name, w.Text()))
	}
	return p, nil
}

// claimAcross binds the static port that the port's adapter has in the other port group; nil for an adapter of nobody.
// It is called outside of the loop.
func (c *commands) claimAcross(ctx context.Context, q api.Move) (*state.NIC, error) {
	ask, across := api.Connect{Port: spec.Port{Name: q.Port, Switch: q.Switch, PortGroup: q.PortGroup}}, false
	err := c.Do(ctx, func() error {
		p, err := c.crosses(q)
		if err != nil {
			return err
		}
		// An error in the words of the definition comes before the controllers are asked.
		known := slices.ContainsFunc(c.Active().Config.Switches, func(s spec.Switch) bool {
			return s.Name == q.Switch && slices.ContainsFunc(s.PortGroups,
				func(g spec.PortGroup) bool { return g.Name == q.PortGroup })
		})
		if !known {
			return api.NewError(api.NotFound, fmt.Sprintf("switch %s with port group %s does not exist on this host: "+
				"see heddle portgroup list", q.Switch, q.PortGroup))
		}
		ask.MAC, across = p.MAC, p.Switch != q.Switch
		if n := c.state.NICOf(q.Port); n != nil {
			ask.VM, ask.Adapter = n.VM, n.Adapter
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	nic, err := c.statics.Claim(ctx, ask, false)
	why := ""
	var refused *api.Error
	switch {
	case errors.As(err, &refused) && refused.Kind == api.Invalid:
		why = refused.Error()
	case err != nil:
		return nil, err
	case nic != nil && across: // without a controller a port may leave a port group of its switch, and is bound later
		why = nic.Conflict
	}
	if why != "" {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s stays where it is, since it gets no static port in "+
			"port group %s/%s: %s", q.Port, q.Switch, q.PortGroup, why))
	}
	return nic, nil
}

// renaming makes a change after which a port has another id. What belongs to the port in the kernel and in the state
// keeps belonging to it; after an error all is as before, but for the counters where the kernel refused the plan.
func (c *commands) renaming(was, now plan.PortID, edit func()) error {
	if was == now {
		return c.changer.change(edit)
	}
	rename := func(from, to plan.PortID) error {
		if err := c.kernel.Succeed(to, from, plan.PortID{}); err != nil {
			return err
		}
		c.state.Succeed(to, from, plan.PortID{}, false)
		c.holding.Rename(to, from, plan.PortID{})
		return nil
	}
	if err := rename(was, now); err != nil {
		return err
	}
	err := c.changer.change(edit)
	if err != nil {
		if back := rename(now, was); back != nil {
			c.log.Warn("a port got new counters as it was not moved", "port", was.String(), "err", back)
		}
	}
	return err
}
