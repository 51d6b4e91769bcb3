package agent

import (
	"fmt"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// What a port has set for itself ends with its owner's connection if its port group says so, and stays otherwise (S10,
// overrides.resetAtDisconnect). A connection ends when the port's device disappears, or with "heddle port disconnect".
// What the file declares for a port does not end: the file always applies. Settings of a host port do not end either,
// because its owner is this host.

// reset removes what commands set on the port and what a port that was connected by command had set for itself. It
// returns the removed settings as texts.
func (ps *ports) reset(name string) (was []string) {
	o := ps.state.Overrides[name]
	was = o.Texts()
	left := state.Override{Reset: o.Reset}
	if p := ps.connected.port(name); p != nil && p.Policy != (spec.Policy{}) {
		was = append(was, "its own policy")
		ps.state.Ports = slices.Clone(ps.state.Ports)
		ps.connected.port(name).Policy = spec.Policy{}
		left.Reset = true
	}
	if len(was) == 0 {
		return nil
	}
	ps.state.Overrides[name] = left
	if left == (state.Override{}) {
		delete(ps.state.Overrides, name)
	}
	ps.cfg, _ = ps.layers().merge()
	return was
}

// resets reports whether the port group's ports lose what they have set for themselves when they are disconnected.
func (ps *ports) resets(sw, group string) bool {
	for _, s := range ps.cfg.Switches {
		for _, g := range s.PortGroups {
			if s.Name == sw && g.Name == group {
				return g.Overrides.Resets()
			}
		}
	}
	return true
}

// keepOwn remembers what a port that is being disconnected has set for itself, if its port group keeps that.
func (ps *ports) keepOwn(p spec.Port) {
	own := ps.state.Overrides[p.Name].On(p).Policy
	if own == (spec.Policy{}) || ps.resets(p.Switch, p.PortGroup) {
		return
	}
	ps.state.Keep(state.Kept{ID: plan.PortID{Switch: p.Switch, Name: p.Name}, PortGroup: p.PortGroup, Policy: own},
		abi.MaxPorts)
}

// withKept returns a port that is to be connected, with its own earlier settings that its port group kept. What it sets
// now wins, field by field.
func (ps *ports) withKept(p spec.Port) spec.Port {
	if have := ps.connected.port(p.Name); have != nil {
		if have.Switch == p.Switch && have.PortGroup == p.PortGroup && !ps.resets(p.Switch, p.PortGroup) {
			p.Policy = p.Policy.Over(have.Policy)
		}
		return p
	}
	if k := ps.state.KeptOf(plan.PortID{Switch: p.Switch, Name: p.Name}, p.PortGroup); k != nil {
		p.Policy = p.Policy.Over(k.Policy)
	}
	return p
}

// connects returns the edit that adds p to the run-time ports, which become the given list. set is what p sets for
// itself now, without its kept settings.
func (ps *ports) connects(p spec.Port, ports []spec.Port, set spec.Policy) func() {
	return func() {
		for _, was := range ps.state.Ports {
			if !slices.ContainsFunc(ports, func(q spec.Port) bool { return q.Name == was.Name }) {
				ps.keepOwn(was)
				ps.connected.ends(was)
			}
		}
		ps.state.Ports = ports
		id := plan.PortID{Switch: p.Switch, Name: p.Name}
		ps.state.DropWait(id)
		ps.state.DropKept(id, p.PortGroup)
		o := ps.state.Overrides[p.Name]
		o.Reset = false
		if set.Blocked != nil {
			o.Blocked = nil
		}
		ps.state.Overrides[p.Name] = o
	}
}

// keptUnfit returns the warning about settings that were kept for a port and that its port group no longer allows.
func keptUnfit(name string) string {
	return fmt.Sprintf("port %s: what it had set for itself when it was disconnected does not fit its port group any "+
		"more, and is forgotten", name)
}

// fitsOwn says why a port can't have these settings; "" where it can. Nothing changes.
func (ps *ports) fitsOwn(port string, own state.OwnPolicy) string {
	before := ps.intent()
	defer ps.restore(before)
	ps.connected.setOwn(port, own)
	_, faults := ps.layers().merge()
	if lines, _ := ps.newFaults(faults, before, ps.file); len(lines) > 0 {
		return lines[0]
	}
	return ""
}
