package agent

import (
	"heddle/internal/beacon"
	"heddle/internal/event"
	"heddle/internal/linkproto"
	"heddle/internal/plan"
)

// byBeacon is who says that an uplink whose beacons get lost is not used.
const byBeacon = "beacon"

// beaconPart watches the uplinks of teams with beacon probing (S51).
type beaconPart struct {
	a       *Agent
	beacons *linkproto.Beacons
	done    chan struct{}
}

func (a *Agent) followBeacons(open linkproto.Opener) {
	p := &beaconPart{a: a, done: make(chan struct{})}
	p.beacons = linkproto.StartBeacons(open, a.log, func(r linkproto.BeaconReport) {
		a.postUnless(p.done, func() { p.reported(r) })
	})
	a.follow(p)
}

func (p *beaconPart) close() error {
	close(p.done)
	return p.beacons.Close()
}

// settled says which uplinks are watched. Those without a link take no part.
func (p *beaconPart) settled(now inForce) {
	var want []linkproto.BeaconGroup
	for _, sw := range now.plan.Switches {
		for _, g := range beacon.Groups(sw) {
			b := linkproto.BeaconGroup{Group: g, Delay: sw.UpDelay, Devices: map[plan.PortID]linkproto.Uplink{}}
			for _, m := range g.Members {
				if d, ok := now.devices[m.ID]; ok {
					b.Devices[m.ID] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.facts[m.ID].Up}
				}
			}
			want = append(want, b)
		}
	}
	p.beacons.Want(want)
}

// reported takes uplinks out of use, or back; it runs in the loop.
func (p *beaconPart) reported(r linkproto.BeaconReport) {
	changed := false
	for id := range p.a.verdicts {
		if r.Out[id] == "" {
			changed = p.a.verdicts.set(id, byBeacon, "") || changed
		}
	}
	for id, why := range r.Out {
		changed = p.a.verdicts.set(id, byBeacon, why) || changed
	}
	for _, c := range r.Changes {
		e := event.Event{Kind: event.Failover, Switch: c.Switch, Uplink: c.Uplink.Name, Text: c.Text}
		switch {
		case c.Uplink == plan.PortID{}:
			e.To = string(c.State)
		case c.Why != "":
			e.From, e.To = "in use", "out"
		default:
			e.From, e.To = "out", "in use"
		}
		p.a.events.Publish(e)
	}
	if changed {
		p.a.settleSoon()
	}
}
