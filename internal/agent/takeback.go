package agent

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// portsBefore are the run-time ports and overrides that differ now from before, as they were.
func (a *Agent) portsBefore(before intent) (list []adopt.PortBefore) {
	was, now := portsByName(before.ports), portsByName(a.state.Ports)
	names := map[string]bool{}
	for _, some := range []map[string]*spec.Port{was, now} {
		for name := range some {
			names[name] = true
		}
	}
	for _, some := range []map[string]state.Override{before.overrides, a.state.Overrides} {
		for name := range some {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p := adopt.PortBefore{Name: name, Port: was[name]}
		o, had := before.overrides[name]
		if had {
			p.Override = &o
		}
		n, has := a.state.Overrides[name]
		if !reflect.DeepEqual(was[name], now[name]) || had != has || !reflect.DeepEqual(o, n) {
			list = append(list, p)
		}
	}
	return list
}

func portsByName(ports []spec.Port) map[string]*spec.Port {
	m := make(map[string]*spec.Port, len(ports))
	for i := range ports {
		m[ports[i].Name] = &ports[i]
	}
	return m
}

// undoIntent makes file and run-time layer what they were before the change; what other ports have become since stays.
func (a *Agent) undoIntent(c *adopt.Change) error {
	if c.File != nil {
		cfg := &spec.Config{}
		if c.File.Content != "" {
			var err error
			if cfg, err = spec.Parse(c.File.File, []byte(c.File.Content)); err != nil {
				return err
			}
		}
		seen := a.state.Config.Seen // the file was read, and is not to be taken for a newer one at the next start
		a.file, a.state.Config = cfg, *c.File
		a.state.Config.Seen = seen
	}
	ports := slices.Clone(a.state.Ports)
	for _, p := range c.Ports {
		ports = slices.DeleteFunc(ports, func(q spec.Port) bool { return q.Name == p.Name })
		if p.Port != nil {
			ports = append(ports, *p.Port)
		}
		delete(a.state.Overrides, p.Name)
		if p.Override != nil {
			a.state.Overrides[p.Name] = *p.Override
		}
	}
	a.state.Ports, a.state.Kept = ports, c.Kept
	a.numbersBack(c)
	return nil
}

// numbersBack gives ports that come back the numbers they had.
func (a *Agent) numbersBack(c *adopt.Change) {
	ids, taken := map[plan.PortID]bool{}, map[uint32]bool{}
	for _, n := range a.state.Numbers {
		ids[n.ID], taken[n.Number] = true, true
	}
	for _, n := range c.Numbers {
		if !ids[n.ID] && !taken[n.Number] {
			a.state.Numbers = append(slices.Clip(a.state.Numbers), n)
		}
	}
}

// wasMade says whether the change is what the state remembers: an agent may have died before it was.
func (a *Agent) wasMade(c *adopt.Change) bool {
	if c.File != nil && a.state.Config.Content == c.File.Content {
		return false
	}
	now := portsByName(a.state.Ports)
	for _, p := range c.Ports {
		o, has := a.state.Overrides[p.Name]
		same := reflect.DeepEqual(p.Port, now[p.Name]) && has == (p.Override != nil) && (!has || reflect.DeepEqual(*p.Override, o))
		if !same {
			return true
		}
	}
	return c.File != nil
}

// takeChangeBack makes everything what it was before the change, all of it at one instant. What does not go is tried again with the
// next tick.
func (a *Agent) takeChangeBack(c *adopt.Change) {
	if err := a.adoptions.journal.Save(); err != nil { // the next agent takes it back as well, its time being over
		a.complain("write down that a change is taken back", err)
	}
	err := a.undoIntent(c)
	if err == nil {
		cfg, faults := a.layers().merge()
		a.cfg, a.stale, a.next, a.warnings = cfg, true, nil, a.file.Warnings()
		a.keepMisfits(faults)
		a.forgetOverrides()
		err = a.reconcile()
	}
	if err != nil {
		a.complain("take back "+c.What, err)
		return
	}
	for a.attaching.left > 0 {
		a.attach(nextTurn)
	}
	if err := a.interfacesBack(c); err != nil {
		c.Reason += "; not all went back: " + err.Error()
	}
	a.forgetChange(c)
}

// forgetChange forgets a change that has gone back, and says so.
func (a *Agent) forgetChange(c *adopt.Change) {
	a.adoptions.journal.Change = nil
	if err := a.adoptions.journal.Save(); err != nil { // the next agent finds that it was not made
		a.complain("forget a change that was taken back", err)
	}
	a.decide(c, api.TrialReverted, c.Reason)
	a.publishTrial(event.Reverted, c, fmt.Sprintf("%q was taken back, everything is as it was before: %s", c.What, c.Reason))
}

// interfacesBack gives the interfaces at risk what the host had on them: addresses, routes, rules and parameters go with an interface that
// is removed, and do not come back by themselves.
func (a *Agent) interfacesBack(c *adopt.Change) error {
	var errs []error
	for _, i := range c.Interfaces {
		d, ok, err := a.dev.Device(i.Config.Device)
		if err != nil || !ok {
			errs = append(errs, err)
			continue
		}
		if d.Index != i.Config.Index {
			errs = append(errs, a.adoptions.net.Set(d.Name, i.Settings...))
		}
		errs = append(errs, a.adoptions.net.Put(i.Config, d.Index, d.Name))
	}
	return errors.Join(errs...)
}

// carryOver gives an interface that the change has made anew the routes and parameters of the one before. Its addresses are the
// configuration's.
func (a *Agent) carryOver(c *adopt.Change) {
	for _, i := range c.Interfaces {
		d, ok, err := a.dev.Device(i.Config.Device)
		if err != nil || !ok || d.Index == i.Config.Index {
			continue
		}
		if err := errors.Join(a.adoptions.net.Set(d.Name, i.Settings...), a.adoptions.net.PutRoutes(i.Config, d.Index, d.Name)); err != nil {
			a.log.Warn("not all that the host had on an interface is on the new one", "device", d.Name, "err", err)
		}
	}
}

// resumeChange takes up a change that an agent before has tried, ahead of the plan: one whose time is over is undone, as is one of an
// earlier boot.
func (a *Agent) resumeChange(here string) error {
	c := a.adoptions.journal.Change
	if c == nil {
		return nil
	}
	if !a.wasMade(c) {
		a.log.Info("a change was about to be tried when the agent ended, and was not made", "what", c.What)
		a.adoptions.journal.Change = nil
		return a.adoptions.journal.Save()
	}
	now, err := hostnet.Boottime()
	if err != nil {
		return err
	}
	a.adoptions.trial.decided = make(chan struct{})
	verdict, why := c.Judge(now)
	switch {
	case c.Phase == adopt.Reverting:
	case c.Place != here:
		why = "the machine started again before it was known to leave this host reachable"
	case verdict != adopt.Revert:
		return nil
	}
	if c.Phase == adopt.Waiting {
		c.Phase, c.Reason = adopt.Reverting, why
	}
	if c.Place != here { // its network configuration puts them where they belong
		c.Interfaces = nil
	}
	return a.undoIntent(c)
}

// goOnTrying ends, with the plan in force, what resumeChange has begun.
func (a *Agent) goOnTrying() {
	c := a.adoptions.journal.Change
	switch {
	case c == nil:
	case c.Phase == adopt.Reverting:
		a.takeChangeBack(c)
	default:
		a.watchChange(c)
	}
}
