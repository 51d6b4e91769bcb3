package agent

import (
	"maps"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/view"
	"heddle/internal/observe/event"
	"heddle/internal/uplinks"
)

// isolation tells of switches that have no uplink that is up: their ports are cut off from the physical network.
type isolation struct {
	*shared
	ports     *ports
	attaching *attaching

	last  map[string]bool // by the name of the switch, as it was told last
	fresh beginning
	held  bool // a change is not told yet
	limit event.Limiter[string]
}

// startTime is how long a switch may be without an uplink when it begins: its devices are being made and attached, and
// a card's link takes a moment.
const startTime = 2 * time.Second

// beginning are the switches that had no uplink when they were first seen, and when that was.
type beginning map[string]time.Time

// begins reports whether a switch has just begun and has no uplink yet, so that nothing is told of it.
func (b *beginning) begins(name string, isolated bool, now time.Time) bool {
	if !isolated {
		delete(*b, name)
		return false
	}
	since, seen := (*b)[name]
	if !seen {
		if *b == nil {
			*b = beginning{}
		}
		since, (*b)[name] = now, now
	}
	return now.Sub(since) < startTime
}

// source is what the states of uplinks are made from.
func (is *isolation) source() view.Source {
	return view.Source{Plan: is.Active().Plan, Applied: is.Active().Applied, Remembered: is.state,
		Problems: is.Active().Problems, Unattached: is.attaching.whyNotAttached, Now: time.Now()}
}

// Settled is called in the loop after each reconcile.
func (is *isolation) Settled(uplinks.InForce) {
	if is.Active().Applied == nil {
		return
	}
	is.held = false
	src := is.source()
	now := make(map[string]bool, len(src.Plan.Switches))
	for _, sw := range src.Plan.Switches {
		why, _ := src.Isolated(sw)
		_, known := is.last[sw.Name]
		if !known && is.fresh.begins(sw.Name, why != "", src.Now) {
			is.held = true // it is looked at again with the next tick
			continue
		}
		now[sw.Name] = is.tell(sw.Name, why)
	}
	is.last = now
	maps.DeleteFunc(is.fresh, func(name string, _ time.Time) bool { return src.Plan.Switch(name) == nil })
}

// tellHeld tells of switches that had changed too often to be told of, if the rate limiter allows it by now.
func (is *isolation) tellHeld() {
	if is.held {
		is.Settled(uplinks.InForce{})
	}
}

// tell publishes that a switch is isolated, or no longer, and returns what has been told. One that changes all the time
// is told of later, with its state by then.
func (is *isolation) tell(name, why string) bool {
	was, isolated := is.last[name], why != ""
	if was == isolated {
		return was
	}
	if !is.limit.Allow(name, time.Now()) {
		is.held = true
		return was
	}
	e := event.Event{Kind: event.Isolated, Switch: name, From: "up", To: "down", Text: why}
	if !isolated {
		e.From, e.To, e.Text = "down", "up", "an uplink of switch "+name+" is up again"
	}
	is.events.Publish(e)
	if isolated {
		// Why is at each of its uplinks.
		is.log.Warn("switch is cut off from the physical network", "switch", name)
	} else {
		is.log.Info("switch is no longer cut off from the physical network", "switch", name)
	}
	return isolated
}

// Close does nothing: what has been told stays.
func (is *isolation) Close() error { return nil }

// hostSwitches is how the switches of those names are, as controllers are told.
func (is *isolation) hostSwitches(given map[string]bool) (list []*controllerv1.HostSwitch) {
	if is.Active().Applied == nil {
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
