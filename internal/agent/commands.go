package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"heddle/internal/agent/admission"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/held"
	"heddle/internal/agent/loopsearch"
	"heddle/internal/agent/standby"
	"heddle/internal/agent/state"
	"heddle/internal/agent/staticports"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// commands are the commands on single ports.
type commands struct {
	*shared
	definition *definition.Part
	connected  *connected
	ports      *ports
	records    *records
	effect     *effect
	attaching  *attaching
	chains     *chains
	loops      *loopsearch.Search
	waiting    *standby.Part
	arrivals   *arrivals
	holding    *held.Part
	trials     *trials
	changer    *changer
	statics    *staticports.Part
	admission  *admission.Judge
	// self is the host's id in its cluster; nil for a host that can be in none.
	self func() string

	quit    context.CancelFunc
	ordered atomic.Bool // a command asked the agent to stop
}

// refOf names an existing port.
func (ps *ports) refOf(name string) api.ObjectRef {
	ref := api.ObjectRef{Kind: api.PortObject, Name: name}
	if p := planned(ps.plan, name); p != nil {
		ref.Switch = p.ID.Switch
	}
	return ref
}

// portRef names a port of the configuration.
func portRef(p spec.Port) api.ObjectRef {
	return api.ObjectRef{Kind: api.PortObject, Switch: p.Switch, Name: p.Name}
}

// noPort is the error for a port that does not exist.
func (ps *ports) noPort(name string) error {
	n := known.Names{What: "port", Else: map[string]string{}}
	for _, sw := range ps.plan.Switches {
		for _, p := range sw.Ports {
			n.All = append(n.All, p.ID.Name)
			n.Else[p.Device] = "the device of " + p.ID.Name
		}
		for _, u := range sw.Uplinks {
			n.Else[u.Device] = "the device of uplink " + u.ID.Name
			n.Else[u.ID.Name] = "an uplink"
		}
	}
	return api.NewError(api.NotFound, n.Missing(name))
}

// notBlockable is the error for blocking or unblocking a port that does not exist. Uplinks have commands of their own.
func (ps *ports) notBlockable(q api.Block) error {
	verb := "restore"
	if q.Blocked {
		verb = "block"
	}
	for _, sw := range ps.plan.Switches {
		if sw.Uplink(q.Port) != nil || sw.LAG(q.Port) != nil {
			return api.NewError(api.NotFound, fmt.Sprintf("%s is an uplink: use \"heddle uplink %s %s\"", q.Port, verb,
				printable.ShellWord(q.Port)))
		}
	}
	return ps.noPort(q.Port)
}

// Block sets or lifts the blocked state of one port (S41), if its port group allows the port this override (S9).
func (c *commands) Block(ctx context.Context, q api.Block) (*api.Applied, error) {
	what := "port unblock "
	if q.Blocked {
		what = "port block "
	}
	out := &api.Applied{}
	return out, c.trials.tried(ctx, c.Do, &guard{what: what + q.Port, within: q.ConfirmWithin}, out,
		func() (err error) {
			if c.ports.declared(q.Port) == nil && c.connected.port(q.Port) == nil {
				return c.ports.notBlockable(q)
			}
			defer func() {
				if p := planned(c.Active().Plan, q.Port); p != nil && q.Blocked && err == nil {
					c.chains.warnBefore(out, p.ID)
				}
			}()
			if p := planned(c.Active().Plan, q.Port); p != nil && !q.Blocked {
				out.Warnings = c.loops.Retry(p.ID)
			}
			if p := planned(c.Active().Plan, q.Port); p != nil && p.Policy.Blocked.V == q.Blocked {
				return nil
			}
			if err := c.records.cutsOff(q.Port); err != nil && q.Blocked {
				return err
			}
			o := c.state.Overrides[q.Port]
			o.Blocked = nil
			// Setting no override is better than an override that changes nothing.
			without, err := c.ports.blockedUnder(q.Port, o)
			if err != nil {
				return err
			}
			if without != q.Blocked {
				o.Blocked = &q.Blocked
			}
			out.Changes = append(out.Changes, api.Change{Kind: api.Changed, Object: c.ports.refOf(q.Port),
				Field: "blocked", Old: plan.FieldValueOf(!q.Blocked), New: plan.FieldValueOf(q.Blocked)})
			return c.effect.timed(out, q.ReadAt, func() error {
				return c.changer.change(func() { c.state.Overrides[q.Port] = o })
			})
		})
}

// blockedUnder reports whether the port would be blocked with that override.
func (ps *ports) blockedUnder(port string, o state.Override) (bool, error) {
	l := ps.layers()
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

// Move puts a port into another port group of its switch, or of another one. A declared port stays there until it is
// moved back or its owner disconnects (S10).
func (c *commands) Move(ctx context.Context, q api.Move) (*api.Applied, error) {
	if across, err := c.switchOf(ctx, &q); err != nil || across {
		if err != nil {
			return nil, err
		}
		return c.moveAcross(ctx, q)
	}
	out := &api.Applied{}
	return out, c.trials.tried(ctx, c.Do, &guard{what: "port move " + q.Port, within: q.ConfirmWithin}, out,
		func() (err error) {
			defer func() {
				if p := planned(c.Active().Plan, q.Port); p != nil && err == nil {
					c.chains.warnBefore(out, p.ID)
				}
			}()
			if err := c.meant().refuses(q.Port, q.Of); err != nil {
				return err
			}
			var from string
			if p := planned(c.Active().Plan, q.Port); p != nil {
				from = p.PortGroup
			}
			edit := c.ports.moves(q)
			if edit == nil {
				return c.ports.noPort(q.Port)
			}
			if from == q.PortGroup {
				if set := c.ports.state.Overrides[q.Port].PortGroup; set != "" && set != from {
					return c.changer.change(edit) // ends an earlier move, into a port group that is gone
				}
				return nil
			}
			if err := c.records.cutsOff(q.Port); err != nil {
				return err
			}
			out.Changes = append(out.Changes, api.Change{Kind: api.Changed, Object: c.ports.refOf(q.Port),
				Field: "portGroup", Old: plan.FieldValueOf(from), New: plan.FieldValueOf(q.PortGroup)})
			return c.effect.timed(out, q.ReadAt, func() error { return c.changer.change(edit) })
		})
}

// moves returns the edit that moves the port, nil if there is no such port.
func (ps *ports) moves(q api.Move) func() {
	if p := ps.connected.port(q.Port); p != nil {
		moved := *p
		moved.PortGroup = q.PortGroup
		return func() {
			ps.state.Ports = slices.Clone(ps.state.Ports)
			*ps.connected.port(q.Port) = moved
		}
	}
	p := ps.declared(q.Port)
	if p == nil {
		return nil
	}
	return func() {
		o := ps.state.Overrides[q.Port]
		o.PortGroup = q.PortGroup
		if q.PortGroup == p.PortGroup {
			o.PortGroup = ""
		}
		ps.state.Overrides[q.Port] = o
	}
}

// Stop ends the agent once this answer is sent; the kernel continues forwarding.
func (c *commands) Stop(context.Context) error {
	c.log.Info("asked to stop")
	c.ordered.Store(true)
	c.quit()
	return nil
}

// Progress returns how many devices have yet to be attached.
func (c *commands) Progress(ctx context.Context) (out *api.Progress, err error) {
	err = c.Do(ctx, func() error {
		out = &api.Progress{Attaching: c.attaching.left, Of: max(c.attaching.most, c.attaching.left)}
		if change := c.records.journal.Change; change != nil {
			out.Trial = c.trials.viewTrial(change)
		}
		return nil
	})
	return out, err
}
