package agent

import (
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/view"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// isolation tells of switches that have no uplink that is up: their ports are cut off from the physical network.
type isolation struct {
	*shared
	ports     *ports
	effect    *effect
	attaching *attaching

	last  map[string]bool // by the name of the switch, as it was told last
	held  bool            // a change is not told yet
	limit event.Limiter[string]
}

// source is what the states of uplinks are made from.
func (is *isolation) source() view.Source {
	return view.Source{Plan: is.ports.plan, Applied: is.effect.applied, Remembered: is.state,
		Problems: is.effect.problems, Unattached: is.attaching.whyNotAttached, Now: time.Now()}
}

// Settled is called in the loop after each reconcile.
func (is *isolation) Settled(uplinks.InForce) {
	if is.effect.applied == nil {
		return
	}
	is.held = false
	src := is.source()
	now := make(map[string]bool, len(src.Plan.Switches))
	for _, sw := range src.Plan.Switches {
		now[sw.Name] = is.tell(src, sw)
	}
	is.last = now
}

// tellHeld tells of switches that had changed too often to be told of, if the rate limiter allows it by now.
func (is *isolation) tellHeld() {
	if is.held {
		is.Settled(uplinks.InForce{})
	}
}

// tell publishes that a switch is isolated, or no longer, and returns what has been told. One that changes all the time
// is told of later, with its state by then.
func (is *isolation) tell(src view.Source, sw *plan.Switch) bool {
	why, _ := src.Isolated(sw)
	was, isolated := is.last[sw.Name], why != ""
	if was == isolated {
		return was
	}
	if !is.limit.Allow(sw.Name, time.Now()) {
		is.held = true
		return was
	}
	e := event.Event{Kind: event.Isolated, Switch: sw.Name, From: "up", To: "down", Text: why}
	if !isolated {
		e.From, e.To, e.Text = "down", "up", "an uplink of switch "+sw.Name+" is up again"
	}
	is.events.Publish(e)
	if isolated {
		// Why is at each of its uplinks.
		is.log.Warn("switch is cut off from the physical network", "switch", sw.Name)
	} else {
		is.log.Info("switch is no longer cut off from the physical network", "switch", sw.Name)
	}
	return isolated
}

// Close does nothing: what has been told stays.
func (is *isolation) Close() error { return nil }

// hostSwitches is how the switches of those names are, as controllers are told.
func (is *isolation) hostSwitches(given map[string]bool) (list []*controllerv1.HostSwitch) {
	if is.effect.applied == nil {
		return nil
	}
	src := is.source()
	for _, sw := range src.Plan.Switches {
		if !given[sw.Name] {
			continue
		}
		out := &controllerv1.HostSwitch{Name: sw.Name}
		out.Isolated, out.Maintained = src.Isolated(sw)
		for _, u := range sw.Uplinks {
			state, why := src.UplinkState(u)
			out.Uplinks = append(out.Uplinks, &controllerv1.HostUplink{Name: u.ID.Name, Device: u.Device,
				State: string(state), Reason: why.Text()})
		}
		list = append(list, out)
	}
	return list
}
