package agent

import (
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/devices"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/stp"
	"heddle/internal/uplinks/teaming/failover"
	"heddle/internal/uplinks/teaming/teams"
)

// teaming is what the agent knows about uplinks and teams beyond the plan.
type teaming struct {
	*shared
	ports    *ports
	effect   *effect
	reporter *reporter

	bonds map[plan.PortID]bond // the uplinks that are bonds
	// lags, neighbours and trees are followers once they run; the latter two are nil before.
	lags       *uplinks.LAGs
	neighbours *uplinks.LLDP
	trees      *uplinks.Trees
	// watches are the followers that know what the physical network does wrong, the gravest first; none before they
	// run.
	watches  []watch
	verdicts uplinks.Verdicts
	links    failover.Links
	// inForce are the active teams: nil before the first plan is made, and the remembered teams before it is active.
	inForce *teams.Teams
	// noted is when the present notification was read; zero if there is none.
	noted time.Time
	// wake fires when an up-delay has passed.
	wake *time.Timer
	// announcer is nil in an agent that announces nothing.
	announcer *announce.Announcer
	ready     readiness
}

// watchLinks takes over the present state of the uplinks' links.
func (t *teaming) watchLinks(p *plan.Plan) {
	if p == nil {
		return
	}
	now := time.Now()
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			d, ok, err := t.dev.Device(u.Device)
			t.links.Observe(u.ID, err == nil && ok && devices.Fact(d).Up, d.CarrierDowns, sw.UpDelay, now)
		}
	}
}

// whyOut returns why an uplink is not used although its link is up.
func (t *teaming) whyOut(uplink plan.PortID) problem.Problem {
	return problem.First(t.links.Out(uplink, time.Now()), t.verdicts.Why(uplink))
}

// woken is ready when an up-delay has passed.
func (t *teaming) woken() <-chan time.Time {
	if t.wake == nil {
		return nil
	}
	return t.wake.C
}

// followLinks watches the links of the uplinks' devices, and wakes the loop when the next up-delay has passed.
func (t *teaming) followLinks(bounds []active.Bound) {
	var indexes []uint32
	wanted := map[plan.PortID]bool{}
	for _, b := range bounds {
		if b.Uplink != nil {
			indexes = append(indexes, b.Device.Index)
		}
	}
	for _, sw := range t.Active().Plan.Switches {
		for _, u := range sw.Uplinks {
			wanted[u.ID] = true
		}
	}
	t.links.Keep(func(id plan.PortID) bool { return wanted[id] })
	t.dev.WatchCarrier(indexes)
	if t.wake != nil {
		t.wake.Stop()
		t.wake = nil
	}
	if at, ok := t.links.Next(); ok {
		t.wake = time.NewTimer(time.Until(at))
	}
}

// formed returns the active teams; at the start the remembered ones.
func (t *teaming) formed() *teams.Teams {
	if t.inForce == nil {
		t.inForce = teams.Remembered(t.state.Uses)
	}
	return t.inForce
}

// failOver moves the ports off uplinks that were just lost, before anything else is done: nothing is written to disk,
// and no other device is touched. It does nothing if no uplink in use was lost.
func (t *teaming) failOver() {
	if !t.effect.changes() {
		return
	}
	lost := t.lostUplinks()
	if len(lost) == 0 {
		return
	}
	now, err := t.effect.change(func(facts plan.Facts) {
		for _, id := range lost {
			f := facts[id]
			f.Up, f.Out = false, t.whyOut(id).Ref()
			facts[id] = f
		}
	}, t.formed())
	if err != nil { // the reconcile that follows does the same, and more
		t.Complain("move ports off a lost uplink", err)
		return
	}
	t.moved(now)
	for _, id := range lost { // the next notification may come only when the uplinks are up again
		o := t.reporter.last[id]
		o.up = false
		t.reporter.last[id] = t.reporter.logChange("uplink", id, o)
	}
}

// lostUplinks returns the uplinks that are up in the active teams and are no longer.
func (t *teaming) lostUplinks() []plan.PortID {
	var lost []plan.PortID
	for _, sw := range t.Active().Applied.Plan.Switches {
		for _, u := range sw.Uplinks {
			if f, ok := t.Active().Applied.Facts[u.ID]; !ok || !f.Up {
				continue
			}
			d, ok, err := t.dev.Device(u.Device)
			if err == nil && (!ok || d.Index != t.Active().Applied.Attachments[u.ID].Ifindex || !devices.Fact(d).Up) {
				lost = append(lost, u.ID)
			}
		}
	}
	return lost
}

func (t *teaming) neighboursOf(uplink plan.PortID) (linkproto.LLDPStatus, bool) {
	if t.neighbours == nil {
		return linkproto.LLDPStatus{}, false
	}
	return t.neighbours.Status(uplink)
}

// watch knows what the physical network does wrong at uplinks.
type watch interface {
	// Why returns what is wrong at an uplink; none for nothing.
	Why(uplink plan.PortID) problem.Problem
}

// outside returns what the physical network does wrong at an uplink that is in use; none for nothing.
func (t *teaming) outside(uplink plan.PortID) (why problem.Problem) {
	for _, w := range t.watches {
		if why = w.Why(uplink); !why.None() {
			return why
		}
	}
	return why
}

// treeOf returns what the other end of an uplink says by spanning tree; false for nothing.
func (t *teaming) treeOf(uplink plan.PortID) (linkproto.Heard[stp.Port], bool) {
	if t.trees == nil {
		return linkproto.Heard[stp.Port]{}, false
	}
	return t.trees.Tree(uplink)
}

// plugged returns where an uplink is plugged in, as LLDP tells it; "" where it is not known.
func (t *teaming) plugged(uplink plan.PortID) string {
	if t.neighbours == nil {
		return ""
	}
	s, ok := t.neighbours.Status(uplink)
	if !ok || len(s.Neighbours) != 1 {
		return ""
	}
	return uplinks.PlugText(s.Neighbours[0])
}
