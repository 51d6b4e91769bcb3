package teams

import (
	"slices"
	"strings"

	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Move counts the ports of one switch that changed their uplinks in the same way for the same reason.
type Move struct {
	Switch, From, To string
	Why              Why
}

// Subject is a port to announce. Moved: it uses another uplink; otherwise the port or its VLAN is new.
type Subject struct {
	Switch *plan.Switch
	Port   *plan.Port
	Moved  bool
}

// Change is which ports moved when other teams became active.
type Change struct {
	Moves []Move
	Ports map[Move]int // number of ports
	// Announced are the ports that moved, were connected, are in other VLANs now, or may not send any more (S47, S49,
	// S50).
	Announced []Subject
}

// Compare returns how the ports moved. inForce is what became active together with now; link returns what is wrong with
// the link of a device.
func Compare(was, now *Teams, inForce *binding.Desired, link func(device string) Link) Change {
	c := Change{Ports: map[Move]int{}}
	for _, sw := range inForce.Plan.Switches {
		for _, p := range sw.Ports {
			c.add(sw, p, was, now, reasons{inForce, link})
		}
	}
	return c
}

func (c *Change) add(sw *plan.Switch, p *plan.Port, was, now *Teams, r reasons) {
	old, had := was.find(p.ID)
	u, connected := now.find(p.ID)
	stayed := had && connected && (!old.Known || old.Up && old.Device == u.Device)
	changed := stayed && !slices.Equal(old.Using, u.Using)
	if changed {
		m := Move{sw.Name, strings.Join(old.Using, ","), strings.Join(u.Using, ","), r.whyMoved(sw, old, u, was, now)}
		if c.Ports[m]++; c.Ports[m] == 1 {
			c.Moves = append(c.Moves, m)
		}
	}
	switch {
	case changed:
		c.Announced = append(c.Announced, Subject{sw, p, true})
	case connected && u.Up && (!stayed || old.Known && *old.VLAN != *u.VLAN):
		c.Announced = append(c.Announced, Subject{sw, p, false})
	case had && old.Known && old.Up && !u.Up: // queued announcements are dropped
		c.Announced = append(c.Announced, Subject{sw, p, false})
	}
}

// reasons has what is needed to find the reasons of moves.
type reasons struct {
	inForce *binding.Desired
	link    func(device string) Link
}

// whyMoved returns why a port changed its entries: what it used failed, what it prefers is usable again, or the
// configuration changed.
func (r reasons) whyMoved(sw *plan.Switch, old, now Use, was, is *Teams) Why {
	for _, e := range old.Using {
		if !is.Usable[plan.PortID{Switch: sw.Name, Name: e}] {
			why := r.whyUnusable(sw, e)
			why.Entry = e
			return why
		}
	}
	for _, e := range now.Using {
		if up, knew := was.Usable[plan.PortID{Switch: sw.Name, Name: e}]; knew && !up &&
			!slices.Contains(old.Using, e) {
			return Why{Kind: Back, Entry: e}
		}
	}
	if !old.Known {
		return Why{Kind: FoundSo}
	}
	if old.Team.Assigned != now.Team.Assigned {
		return Why{Kind: Load}
	}
	return Why{Kind: Configured}
}

func (r reasons) whyUnusable(sw *plan.Switch, entry string) Why {
	if sw.LAG(entry) != nil {
		return Why{Kind: NoMember}
	}
	u := r.inForce.Plan.Uplink(plan.PortID{Switch: sw.Name, Name: entry})
	switch {
	case u == nil:
		return Why{Kind: NoUplink}
	case u.Drained:
		return Why{Kind: NotUsed, Problem: problem.Of(problem.Drained)}
	case r.inForce.Facts[u.ID].Out != nil:
		return Why{Kind: NotUsed, Problem: r.inForce.Facts[u.ID].Out.Value()}
	}
	return Why{Kind: NoLink, Link: r.link(u.Device), Device: u.Device}
}
