package agent

import (
	"cmp"
	"maps"
	"time"

	"heddle/internal/agent/devices"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/teaming/failover"
	"heddle/internal/uplinks/teaming/teams"
)

// teaming is what the agent knows of uplinks and teams beside the plan.
type teaming struct {
	links failover.Links
	// inForce is nil before the first plan is made, and what is remembered before it is in force.
	inForce *teams.Teams
	// noted is when the notification at hand was read; zero while none is.
	noted time.Time
	// wake fires when an up-delay has passed.
	wake *time.Timer
	// announcer is nil in an agent that announces nothing.
	announcer *announce.Announcer
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
			a.teaming.links.Observe(u.ID, err == nil && ok && devices.Fact(d).Up, d.CarrierDowns, sw.UpDelay, now)
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

// formed is what is in force; at the start what is remembered.
func (a *Agent) formed() *teams.Teams {
	if a.teaming.inForce == nil {
		a.teaming.inForce = teams.Remembered(a.state.Uses)
	}
	return a.teaming.inForce
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
	now := teams.Form(&d, a.formed())
	at, err := a.kernel.Reteam(d)
	if err != nil { // the reconcile that follows does the same, and more
		a.complain("move ports off a lost uplink", err)
		return
	}
	a.applied, a.flip = &d, at
	a.state.Uses = now.Remember(d.Plan)
	a.moved(now)
	for _, id := range lost { // the next report may come only when they are back
		o := a.last[id]
		o.up = false
		a.last[id] = a.logChange("uplink", id, o)
	}
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
			if err == nil && (!ok || d.Index != a.applied.Attachments[u.ID].Ifindex || !devices.Fact(d).Up) {
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
