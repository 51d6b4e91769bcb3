package agent

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"heddle/internal/agent/devices"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/teaming/teams"
)

// observation is what was last logged of a port.
type observation struct {
	up        bool
	blocked   bool
	problem   string
	before    string // what runs before the switch on its device
	violation string
}

// bound is a port or uplink with the device that is its switch's side.
type bound struct {
	id     plan.PortID
	device hostdev.Device
	port   *plan.Port // nil for an uplink
	uplink *plan.Uplink
}

// reconcile makes the kernel what configuration and devices ask for. It may be called at any time and does nothing where
// nothing changed. What it leaves undone on an error the next call does.
func (a *Agent) reconcile() error {
	defer func(before bool) { a.settling = before }(a.settling)
	a.settling = true
	fresh := a.stale
	if fresh {
		p := a.next
		if a.next = nil; p == nil {
			var err error
			if p, err = a.resolve(a.cfg); err != nil {
				return err
			}
		}
		a.plan, a.stale = p, false
	}
	if a.keepWaits() {
		a.stale = true
		return a.reconcile()
	}
	a.problems = map[plan.PortID]string{}
	bounds, err := a.bind(fresh)
	if err != nil {
		return err
	}
	changed, errHold := a.takeHold(bounds)
	if errHold != nil && a.commanded {
		return errHold
	}
	if errHold != nil { // a full disk, most likely: what is in hand is served all the same
		bounds = a.inHand(bounds, errHold)
	}
	if changed {
		// What is in hand is part of the plan: initial MACs, and overrides that ended. The second time nothing changes.
		a.stale = true
		return a.reconcile()
	}
	errPrepare := errors.Join(errHold, a.prepareAll(bounds), a.keepARPApart(bounds), a.tuneUplinks(bounds))
	a.adoptMACs()
	a.lags.Judge(a.plan, lagDevices(bounds))
	a.seeLoops(bounds)
	desired := a.desired(bounds)
	formed := teams.Form(&desired, a.formed())
	a.state.Uses = formed.Remember(desired.Plan)
	if a.applied == nil || a.redo || !reflect.DeepEqual(*a.applied, desired) {
		if err := a.putInForce(desired); err != nil {
			return errors.Join(errPrepare, err)
		}
		a.moved(formed)
		a.attach(firstTurn)
	}
	a.followBonds(bounds, formed)
	a.followLinks(bounds)
	errRelease := a.releaseAll()
	a.noteStrangers(bounds)
	a.report()
	a.tellLoops(a.looping.changes())
	a.tellFollowers(bounds)
	// What is in force and remembered is not taken back for these; they are tried again.
	a.late = errors.Join(errRelease, a.save())
	return errPrepare
}

// resolve makes the plan of a configuration; before the first configuration it is empty.
func (a *Agent) resolve(cfg *spec.Config) (*plan.Plan, error) {
	if len(cfg.Switches) == 0 {
		return &plan.Plan{}, nil
	}
	p, err := plan.ResolveValid(cfg, a.state.PortNumbers())
	if err != nil {
		return nil, err
	}
	a.waitMACs(p)
	p.SetMACTable(a.kernel.MACTable())
	// Asked now, with every port connected, and not when the device that is one too many appears.
	return p, dataplane.Fits(p)
}

// save writes the state where it changed.
func (a *Agent) save() error {
	a.keepNumbers()
	return a.store.Save(a.state)
}

// bind finds the device of every port and uplink. Host interfaces are made where they are missing; with fresh they are also
// held against the plan in every respect.
func (a *Agent) bind(fresh bool) ([]bound, error) {
	all := make([]bound, 0, a.plan.Members())
	for _, sw := range a.plan.Switches {
		for _, u := range sw.Uplinks {
			d, ok, err := a.find(u.ID, u.Device, spec.Host)
			if err != nil {
				return nil, err
			}
			if ok && d.MTU < sw.MTU {
				a.problems[u.ID] = fmt.Sprintf("device %s has MTU %d, below the %d of switch %s: raise it (ip link set %s mtu %d)", d.Name, d.MTU, sw.MTU, sw.Name, d.Name, sw.MTU)
			}
			if ok {
				all = append(all, bound{id: u.ID, device: d, uplink: u})
			}
		}
		for _, p := range sw.Ports {
			d, ok, err := a.bindPort(p, fresh)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, bound{id: p.ID, device: d, port: p})
			}
		}
	}
	return all, nil
}

func (a *Agent) bindPort(p *plan.Port, fresh bool) (hostdev.Device, bool, error) {
	if p.Role != spec.Host {
		return a.find(p.ID, p.Device, spec.VNIC)
	}
	if p.InitialMAC.IsZero() {
		p.InitialMAC = devices.DerivedMAC(p.ID, a.place)
	}
	d, err := a.hostInterface(p, fresh)
	if err != nil {
		a.problems[p.ID] = err.Error()
		return hostdev.Device{}, false, nil
	}
	return d, true, nil
}

// find is the device of that name if it can serve; otherwise why not goes into the port's problems.
func (a *Agent) find(id plan.PortID, name string, role spec.Role) (hostdev.Device, bool, error) {
	if name == "" {
		a.problems[id] = "no device is bound to it on this host"
		return hostdev.Device{}, false, nil
	}
	d, ok, err := a.dev.Device(name)
	switch {
	case err != nil:
		return d, false, err
	case !ok:
		a.problems[id] = fmt.Sprintf("there is no device %s; it is connected when it appears", name)
		return d, false, nil
	}
	if why := devices.Unusable(d, role); why != "" {
		a.problems[id] = why
		return d, false, nil
	}
	return d, true, nil
}

// adoptMACs gives vNIC ports without a configured MAC the one their owner's adapter had when it was connected: later changes
// are changes (S3). One that another port of the switch has is not taken.
func (a *Agent) adoptMACs() {
	for _, sw := range a.plan.Switches {
		if !slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.InitialMAC.IsZero() }) {
			continue
		}
		taken := make(map[plan.MAC]string, len(sw.Ports))
		for _, p := range sw.Ports {
			if !p.InitialMAC.IsZero() {
				taken[p.InitialMAC] = p.ID.Name
			}
		}
		for _, p := range sw.Ports {
			h := a.state.Of(p.ID)
			if !p.InitialMAC.IsZero() || h == nil || h.MAC.IsZero() {
				continue
			}
			if other, dup := taken[h.MAC]; dup {
				a.problems[p.ID] = fmt.Sprintf("its adapter has the MAC %s of port %s: give one of them another, or set mac", h.MAC, other)
				continue
			}
			p.InitialMAC = h.MAC
			taken[h.MAC] = p.ID.Name
		}
	}
}

// desired is what the kernel shall do.
func (a *Agent) desired(bounds []bound) binding.Desired {
	a.watchLinks()
	d := binding.Desired{Plan: a.plan, Facts: make(plan.Facts, len(bounds)), Attachments: make(map[plan.PortID]binding.Attachment, len(bounds))}
	for _, b := range bounds {
		if b.uplink != nil {
			f := devices.UplinkFact(b.device)
			f.Out = a.whyOut(b.id)
			d.Facts[b.id] = f
			d.Attachments[b.id] = binding.Attachment{Ifindex: b.device.Index}
			continue
		}
		f := devices.PortFact(b.device)
		if why := a.adapters.Onto(b.port, &f); why != "" && a.problems[b.id] == "" {
			a.problems[b.id] = why
		}
		if why := a.waitFact(b.id, &f); why != "" && a.problems[b.id] == "" {
			a.problems[b.id] = why
		}
		f.Assigned = a.state.AssignedTo(b.port)
		if f.LoopBlocked = a.looping.why(b.id); f.LoopBlocked != "" {
			a.problems[b.id] = a.looping.problem(b.id)
		}
		d.Facts[b.id] = f
		d.Attachments[b.id] = devices.Attachment(b.device)
	}
	if len(a.state.Waits) > 0 {
		for _, sw := range a.plan.Switches {
			a.rivals(sw, d.Facts)
		}
	}
	return d
}
