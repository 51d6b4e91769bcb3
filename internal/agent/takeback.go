package agent

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func portsByName(ports []spec.Port) map[string]*spec.Port {
	m := make(map[string]*spec.Port, len(ports))
	for i := range ports {
		m[ports[i].Name] = &ports[i]
	}
	return m
}

// undoIntent restores the file and the run-time layer to the state before the change; later changes of other ports
// stay.
func (ps *ports) undoIntent(c *adopt.Change) error {
	if c.File != nil {
		cfg := &spec.Config{}
		if c.File.Content != "" {
			var err error
			if cfg, err = spec.Parse(c.File.File, []byte(c.File.Content)); err != nil {
				return err
			}
		}
		seen := ps.state.Config.Seen // the file was read, and must not count as newer at the next start
		ps.file, ps.state.Config = cfg, *c.File
		ps.state.Config.Seen, ps.state.Config.By = seen, fmt.Sprintf("%q was taken back", c.What)
	}
	before := ps.intent()
	if c.Slice != nil {
		h, err := definition.Read(c.Slice.Was, nil, nil)
		if err != nil {
			return err
		}
		if c.Controllers && !c.Slice.Was.Same(ps.definition.Given()) {
			ps.definition.Revert(c.Reason.Text())
		}
		ps.definition.Take(h, c.Slice.Was)
	}
	ports := slices.Clone(ps.state.Ports)
	for _, p := range c.Ports {
		ports = slices.DeleteFunc(ports, func(q spec.Port) bool { return q.Name == p.Name })
		if p.Port != nil {
			ports = append(ports, *p.Port)
		}
		delete(ps.state.Overrides, p.Name)
		if p.Override != nil {
			ps.state.Overrides[p.Name] = *p.Override
		}
	}
	ps.state.Ports = ports
	if !c.Controllers { // others went on meanwhile
		ps.state.Kept = c.Kept
		ps.definition.PutKept(c.KeptObjects)
	}
	if c.Uplinks != nil {
		ps.state.Maintenance = *c.Uplinks
	}
	ps.numbersBack(c)
	before.ports, before.overrides = ps.state.Ports, ps.state.Overrides // no port that comes back is new
	return ps.definition.Keep(before.definition, before.uses())
}

// numbersBack gives restored ports their earlier numbers.
func (ps *ports) numbersBack(c *adopt.Change) {
	ids, taken := map[plan.PortID]bool{}, map[uint32]bool{}
	for _, n := range ps.state.Numbers {
		ids[n.ID], taken[n.Number] = true, true
	}
	for _, n := range c.Numbers {
		if !ids[n.ID] && !taken[n.Number] {
			ps.state.Numbers = append(slices.Clip(ps.state.Numbers), n)
		}
	}
}

// wasMade reports whether the state contains the change: an agent may have died before it was made.
func (ps *ports) wasMade(c *adopt.Change) bool {
	if c.File != nil && ps.state.Config.Content == c.File.Content {
		return false
	}
	if c.Slice != nil && c.Slice.Was.Same(ps.definition.Given()) {
		return false
	}
	if c.Uplinks != nil && !slices.EqualFunc(*c.Uplinks, ps.state.Maintenance, state.Maintenance.Same) {
		return true
	}
	now := portsByName(ps.state.Ports)
	for _, p := range c.Ports {
		o, has := ps.state.Overrides[p.Name]
		same := reflect.DeepEqual(p.Port, now[p.Name]) && has == (p.Override != nil) &&
			(!has || reflect.DeepEqual(*p.Override, o))
		if !same {
			return true
		}
	}
	return c.File != nil || c.Slice != nil
}

// takeChangeBack restores everything to the state before the change, at one instant. What fails is tried again on the
// next tick.
func (tr *trials) takeChangeBack(c *adopt.Change) {
	if err := tr.records.journal.Save(); err != nil { // the next agent undoes it as well, since its time is over
		tr.Complain("write down that a change is taken back", err)
	}
	err := tr.ports.undoIntent(c)
	if err == nil {
		cfg, faults := tr.ports.layers().merge()
		tr.ports.cfg, tr.ports.stale, tr.ports.next, tr.ports.warnings = cfg, true, nil, tr.ports.declaredWarnings()
		tr.ports.keepMisfits(faults)
		tr.ports.forgetOverrides()
		err = tr.reconciler.reconcile()
	}
	if err != nil {
		tr.Complain("take back "+c.What, err)
		return
	}
	for tr.attaching.left > 0 {
		tr.attaching.attach(nextTurn)
	}
	if err := tr.interfacesBack(c); err != nil {
		c.Reason.Left = err.Error()
	}
	tr.forgetChange(c)
	if c.Controllers {
		tr.connection.Anew()
	}
}

// forgetChange removes the record of a change that was undone, and publishes an event.
func (tr *trials) forgetChange(c *adopt.Change) {
	tr.records.journal.Change = nil
	if err := tr.records.journal.Save(); err != nil { // the next agent finds that it was not made
		tr.Complain("forget a change that was taken back", err)
	}
	tr.decide(c, api.TrialReverted, c.Reason)
	tr.publishTrial(event.Reverted, c, fmt.Sprintf("%q was taken back, everything is as it was before: %s", c.What,
		c.Reason.Text()))
}

// interfacesBack restores on the interfaces at risk what the host had there: addresses, routes, rules and parameters
// are lost with an interface that is removed, and nothing else restores them.
func (tr *trials) interfacesBack(c *adopt.Change) error {
	var errs []error
	for _, i := range c.Interfaces {
		d, ok, err := tr.dev.Device(i.Config.Device)
		if err != nil || !ok {
			errs = append(errs, err)
			continue
		}
		if d.Index != i.Config.Index {
			errs = append(errs, tr.records.net.Set(d.Name, i.Settings...))
		}
		errs = append(errs, tr.records.net.Put(i.Config, d.Index, d.Name))
	}
	return errors.Join(errs...)
}

// carryOver gives an interface that the change has made anew the routes and parameters of the earlier one. Its
// addresses come from the configuration.
func (tr *trials) carryOver(c *adopt.Change) {
	for _, i := range c.Interfaces {
		d, ok, err := tr.dev.Device(i.Config.Device)
		if err != nil || !ok || d.Index == i.Config.Index {
			continue
		}
		if err := errors.Join(tr.records.net.Set(d.Name, i.Settings...), tr.records.net.PutRoutes(i.Config, d.Index,
			d.Name)); err != nil {
			tr.log.Warn("not all that the host had on an interface is on the new one", "device", d.Name, "err", err)
		}
	}
}

// resumeChange resumes, before the plan is made, the trial of a change that an earlier agent made. A change whose time
// is over is undone, and so is one of an earlier boot.
func (tr *trials) resumeChange(here string) error {
	c := tr.records.journal.Change
	if c == nil {
		return nil
	}
	if !tr.ports.wasMade(c) {
		tr.log.Info("a change was about to be tried when the agent ended, and was not made", "what", c.What)
		tr.records.journal.Change = nil
		return tr.records.journal.Save()
	}
	now, err := hostnet.Boottime()
	if err != nil {
		return err
	}
	tr.decided = make(chan struct{})
	if c.Controllers && c.Phase == adopt.Waiting {
		return tr.resumeControllers(c, now, here)
	}
	verdict, why := c.Judge(now)
	switch {
	case c.Phase == adopt.Reverting:
	case c.Place != here:
		why = undone.Reason{Code: undone.Restarted, Detail: "it was not known yet to leave this host reachable"}
	case verdict != adopt.Revert:
		return nil
	}
	if c.Phase == adopt.Waiting {
		c.Phase, c.Reason = adopt.Reverting, why
	}
	if c.Place != here { // after a reboot the host's own network configuration sets the addresses
		c.Interfaces = nil
	}
	return tr.ports.undoIntent(c)
}

// goOnTrying completes, with the active plan, what resumeChange has begun.
func (tr *trials) goOnTrying() {
	c := tr.records.journal.Change
	switch {
	case c == nil:
	case c.Phase == adopt.Reverting:
		tr.takeChangeBack(c)
	default:
		tr.watchChange(c)
	}
}
