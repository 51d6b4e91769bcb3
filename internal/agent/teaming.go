package agent

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/failover"
	"heddle/internal/hostdev"
	"heddle/internal/plan"
	"heddle/internal/state"
)

// teaming is what the agent knows of uplinks and teams beside the plan.
type teaming struct {
	links failover.Links
	// inForce is nil before the first plan is made, and what is remembered before it is in force.
	inForce *teams
	// noted is when the notification at hand was read; zero while none is.
	noted time.Time
	// wake fires when an up-delay has passed.
	wake *time.Timer
	// announcer is nil in an agent that announces nothing.
	announcer *announcer
}

// teams is which uplinks and LAGs are usable and which of them each connected port uses.
type teams struct {
	usable map[plan.PortID]bool
	ports  map[plan.PortID]portUse
}

// portUse is what of a port decides where it is announced.
type portUse struct {
	failover.Use
	team   failover.Team
	device uint32 // ifindex
	up     bool   // it may send: up and not blocked
	vlan   plan.VLAN
	known  bool // false: what was remembered of it says only Use
}

// watchLinks takes in how the links of the uplinks are now.
func (a *Agent) watchLinks() {
	if a.plan == nil {
		return
	}
	now := time.Now()
	for _, sw := range a.plan.Switches {
		for _, u := range sw.Uplinks {
			d, ok, err := a.dev.Device(u.Device)
			a.teaming.links.Observe(u.ID, err == nil && ok && factOf(d).Up, d.CarrierDowns, sw.UpDelay, now)
		}
	}
}

// whyOut is why an uplink is not used though its link is up.
func (a *Agent) whyOut(uplink plan.PortID) string {
	return cmp.Or(a.teaming.links.Out(uplink, time.Now()), a.verdicts.Why(uplink))
}

// woken is ready when an up-delay has passed.
func (a *Agent) woken() <-chan time.Time {
	if a.teaming.wake == nil {
		return nil
	}
	return a.teaming.wake.C
}

// followLinks has the links of the uplinks' devices watched, and the loop woken when the next up-delay has passed.
func (a *Agent) followLinks(bounds []bound) {
	var indexes []uint32
	wanted := map[plan.PortID]bool{}
	for _, b := range bounds {
		if b.uplink != nil {
			indexes = append(indexes, b.device.Index)
		}
	}
	for _, sw := range a.plan.Switches {
		for _, u := range sw.Uplinks {
			wanted[u.ID] = true
		}
	}
	a.teaming.links.Keep(func(id plan.PortID) bool { return wanted[id] })
	a.dev.WatchCarrier(indexes)
	if a.teaming.wake != nil {
		a.teaming.wake.Stop()
		a.teaming.wake = nil
	}
	if at, ok := a.teaming.links.Next(); ok {
		a.teaming.wake = time.NewTimer(time.Until(at))
	}
}

// form works out what every connected port uses under these facts, and writes into the facts what rests for it (S44).
func (a *Agent) form(d *dataplane.Desired) *teams {
	was := a.formed()
	now := &teams{usable: map[plan.PortID]bool{}, ports: make(map[plan.PortID]portUse, len(d.Facts))}
	for _, sw := range d.Plan.Switches {
		now.weigh(sw, d.Facts)
		usable := func(entry string) bool { return now.usable[plan.PortID{Switch: sw.Name, Name: entry}] }
		for _, p := range sw.Ports {
			f, connected := d.Facts[p.ID]
			if !connected {
				continue
			}
			use := portUse{team: failover.TeamOf(p, f.Assigned), device: d.Attachments[p.ID].Ifindex, up: f.Up && !p.Policy.Blocked.V, vlan: p.Policy.VLAN.V, known: true}
			use.Use = use.team.Next(was.ports[p.ID].before(use), usable)
			if !slices.Equal(f.Resting, use.Resting) {
				f.Resting = use.Resting
				d.Facts[p.ID] = f
			}
			now.ports[p.ID] = use
		}
	}
	return now
}

// before is where a port stands that is about to be used as now says: nowhere when it was just connected or powered on, or its
// team is another.
func (u portUse) before(now portUse) failover.Use {
	if u.known && (!u.up || u.device != now.device || !u.team.Same(now.team)) {
		return failover.Use{}
	}
	return u.Use
}

// weigh says which uplinks and LAGs of a switch are usable: a LAG is when one of its members is.
func (t *teams) weigh(sw *plan.Switch, facts plan.Facts) {
	for _, u := range sw.Uplinks {
		f, ok := facts[u.ID]
		t.usable[u.ID] = ok && f.Usable()
	}
	for _, l := range sw.LAGs {
		t.usable[plan.PortID{Switch: sw.Name, Name: l.Name}] = slices.ContainsFunc(l.Uplinks, func(name string) bool {
			return t.usable[plan.PortID{Switch: sw.Name, Name: name}]
		})
	}
}

// formed is what is in force; at the start what is remembered, with every uplink taken as usable.
func (a *Agent) formed() *teams {
	if a.teaming.inForce != nil {
		return a.teaming.inForce
	}
	t := &teams{usable: map[plan.PortID]bool{}, ports: make(map[plan.PortID]portUse, len(a.state.Uses))}
	for _, u := range a.state.Uses {
		t.ports[u.ID] = portUse{Use: u.Use}
		for _, entry := range slices.Concat(u.Using, u.Resting) {
			t.usable[plan.PortID{Switch: u.ID.Switch, Name: entry}] = true
		}
	}
	a.teaming.inForce = t
	return t
}

// remember has the state keep what the ports use.
func (a *Agent) remember(p *plan.Plan, t *teams) {
	a.state.Uses = make([]state.PortUse, 0, len(t.ports))
	for _, sw := range p.Switches {
		for _, p := range sw.Ports {
			if u, ok := t.ports[p.ID]; ok {
				a.state.Uses = append(a.state.Uses, state.PortUse{ID: p.ID, Use: u.Use})
			}
		}
	}
}

// failOver moves the ports off uplinks that were just lost, before anything else is looked at: nothing is written to disk, no
// other device is touched. It does nothing when no uplink in use was lost.
func (a *Agent) failOver() {
	if a.applied == nil || a.stale || a.redo {
		return
	}
	lost := a.lostUplinks()
	if len(lost) == 0 {
		return
	}
	d := *a.applied
	d.Facts = maps.Clone(d.Facts)
	for _, id := range lost {
		f := d.Facts[id]
		f.Up, f.Out = false, a.whyOut(id)
		d.Facts[id] = f
	}
	now := a.form(&d)
	at, err := a.kernel.Reteam(d)
	if err != nil { // the reconcile that follows does the same, and more
		a.complain("move ports off a lost uplink", err)
		return
	}
	a.applied, a.flip = &d, at
	a.remember(d.Plan, now)
	a.moved(now)
}

// lostUplinks are those that were up in what is in force and are not any more.
func (a *Agent) lostUplinks() []plan.PortID {
	var lost []plan.PortID
	for _, sw := range a.applied.Plan.Switches {
		for _, u := range sw.Uplinks {
			if f, ok := a.applied.Facts[u.ID]; !ok || !f.Up {
				continue
			}
			d, ok, err := a.dev.Device(u.Device)
			if err == nil && (!ok || d.Index != a.applied.Attachments[u.ID].Ifindex || !factOf(d).Up) {
				lost = append(lost, u.ID)
			}
		}
	}
	return lost
}

// linkState says what is wrong with the link of an uplink's device.
func (a *Agent) linkState(device string) string {
	d, ok, err := a.dev.Device(device)
	switch {
	case device == "":
		return "no device is bound to it"
	case err != nil || !ok:
		return "its device " + device + " is gone"
	case !d.AdminUp:
		return "its device " + device + " was set down"
	case !d.Carrier || d.Kind == hostdev.Veth && d.Peer.Seen && !d.Peer.AdminUp:
		return "its device " + device + " has no link"
	}
	return "its device " + device + " does not serve it"
}
