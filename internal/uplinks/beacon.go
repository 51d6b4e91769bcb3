package uplinks

import (
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/beacon"
	"heddle/internal/uplinks/linkproto"
)

// byBeacon is the name under which beacons give their verdicts on uplinks.
const byBeacon = "beacon"

// Beacons watches the uplinks of teams with beacon probing (S51).
type Beacons struct {
	host    Host
	beacons *linkproto.Beacons
	done    chan struct{}
}

// FollowBeacons starts beacon probing.
func FollowBeacons(h Host, open linkproto.Opener) *Beacons {
	p := &Beacons{host: h, done: make(chan struct{})}
	p.beacons = linkproto.StartBeacons(open, h.Log, func(r linkproto.BeaconReport) {
		h.Post(p.done, func() { p.reported(r) })
	})
	return p
}

// Close ends beacon probing.
func (p *Beacons) Close() error {
	close(p.done)
	return p.beacons.Close()
}

// Settled updates which uplinks are watched. Those without a link are left out.
func (p *Beacons) Settled(now InForce) {
	var want []linkproto.BeaconGroup
	for _, sw := range now.Plan.Switches {
		for _, g := range beacon.Groups(sw) {
			b := linkproto.BeaconGroup{Group: g, Delay: sw.UpDelay, Devices: map[plan.PortID]linkproto.Uplink{}}
			for _, m := range g.Members {
				if d, ok := now.Devices[m.ID]; ok {
					b.Devices[m.ID] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.Facts[m.ID].Up}
				}
			}
			want = append(want, b)
		}
	}
	p.beacons.Want(want)
}

// reported takes uplinks out of use, or back into use; it runs in the loop.
func (p *Beacons) reported(r linkproto.BeaconReport) {
	changed := false
	for id := range p.host.Verdicts {
		if r.Out[id].None() {
			changed = p.host.Verdicts.Set(id, byBeacon, problem.Problem{}) || changed
		}
	}
	for id, why := range r.Out {
		changed = p.host.Verdicts.Set(id, byBeacon, why) || changed
	}
	for _, c := range r.Changes {
		e := event.Event{Kind: event.Failover, Switch: c.Switch, Uplink: c.Uplink.Name, Text: c.Text}
		switch {
		case c.Uplink == plan.PortID{}:
			e.To = string(c.State)
		case !c.Why.None():
			e.From, e.To = "in use", "out"
		default:
			e.From, e.To = "out", "in use"
		}
		p.host.Events.Publish(e)
	}
	if changed {
		p.host.SettleSoon()
	}
}
