package agent

import (
	"fmt"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks/teaming/teams"
)

// bond is an uplink that is a Linux bond, and the member by which it sends.
type bond struct {
	index  uint32
	member string
}

// followBonds announces the ports whose frames now leave by another member of a bond: for the physical network they
// have moved, although their uplink is the same. The bonding driver announces only the host's own addresses.
func (t *teaming) followBonds(bounds []active.Bound, now *teams.Teams) {
	seen := map[plan.PortID]bond{}
	for _, b := range bounds {
		d := b.Device
		was, known := t.bonds[b.ID]
		if b.Uplink == nil || d.Driver != "bond" {
			continue
		}
		same := known && was.index == d.Index
		if d.ActiveMember == "" && same { // the bond is changing its member
			seen[b.ID] = was
			continue
		}
		seen[b.ID] = bond{d.Index, d.ActiveMember}
		if same && was.member != "" && was.member != d.ActiveMember {
			t.movedWithin(b, was.member, now)
		}
	}
	t.bonds = seen
}

// movedWithin announces the ports that use the uplink, and publishes an event about it.
func (t *teaming) movedWithin(b active.Bound, from string, now *teams.Teams) {
	sw := t.Active().Plan.Switch(b.ID.Switch)
	var list []teams.Subject
	for _, p := range sw.Ports {
		if u := now.Of(p.ID); u.Up && slices.Contains(u.Using, b.ID.Name) {
			list = append(list, teams.Subject{Switch: sw, Port: p, Moved: true})
		}
	}
	t.announce(list, now)
	to := b.Device.ActiveMember
	text := fmt.Sprintf("%s: bond %s sends by %s instead of %s", b.ID.Name, b.Device.Name, to, from)
	t.events.Publish(event.Event{Kind: event.Failover, Switch: sw.Name, Uplink: b.ID.Name, Device: b.Device.Name,
		From: from, To: to, Ports: len(list), Text: text})
	t.meters.FailedOver(sw.Name)
	t.log.Info("failover", "switch", sw.Name, "uplink", b.ID.Name, "from", from, "to", to, "ports", len(list), "what",
		text)
}
