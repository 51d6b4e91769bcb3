package teams

import (
	"slices"

	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/uplinks/teaming/failover"
)

// Teams says which uplinks and LAGs are usable and which of them each connected port uses.
type Teams struct {
	Usable map[plan.PortID]bool
	Ports  map[plan.PortID]*Use
}

// Use is the part of a port's state that decides where it is announced.
type Use struct {
	failover.Use
	Team   failover.Team
	Device uint32 // ifindex
	Up     bool   // it may send: up, not blocked, and not waiting for its guest
	VLAN   *plan.VLAN
	Known  bool // false: only Use is known, from an earlier agent
}

// Form computes what every connected port uses under these facts, and writes into the facts which entries rest for it
// (S44).
func Form(d *binding.Desired, was *Teams) *Teams {
	now := &Teams{Usable: map[plan.PortID]bool{}, Ports: make(map[plan.PortID]*Use, len(d.Facts))}
	room := make([]Use, len(d.Facts)) // one allocation for all ports: a thousand small ones take a while
	for _, sw := range d.Plan.Switches {
		now.weigh(sw, d.Facts)
		usable := func(entry string) bool { return now.Usable[plan.PortID{Switch: sw.Name, Name: entry}] }
		for _, p := range sw.Ports {
			f, connected := d.Facts[p.ID]
			if !connected {
				continue
			}
			use := &room[0]
			room = room[1:]
			*use = Use{Team: failover.TeamOf(p, f.Assigned), Device: d.Attachments[p.ID].Ifindex, Up: f.Up &&
				!f.Waits() && !p.Policy.Blocked.V, VLAN: &p.Policy.VLAN.V, Known: true}
			use.Use = use.Team.Next(was.Of(p.ID).before(use), usable)
			if !slices.Equal(f.Resting, use.Resting) {
				f.Resting = use.Resting
				d.Facts[p.ID] = f
			}
			now.Ports[p.ID] = use
		}
	}
	return now
}

// Of returns what the port uses; the zero Use for a port that is not connected.
func (t *Teams) Of(id plan.PortID) Use {
	u, _ := t.find(id)
	return u
}

func (t *Teams) find(id plan.PortID) (u Use, connected bool) {
	if p, ok := t.Ports[id]; ok {
		return *p, true
	}
	return Use{}, false
}

// before returns the previous use that counts for a port: none if it was just connected or powered on, or if its team
// has changed.
func (u Use) before(now *Use) failover.Use {
	if u.Known && (!u.Up || u.Device != now.Device || !u.Team.Same(now.Team)) {
		return failover.Use{}
	}
	return u.Use
}

// weigh computes which uplinks and LAGs of a switch are usable: a LAG is if one of its members is.
func (t *Teams) weigh(sw *plan.Switch, facts plan.Facts) {
	for _, u := range sw.Uplinks {
		f, ok := facts[u.ID]
		t.Usable[u.ID] = ok && u.Usable(f)
	}
	for _, l := range sw.LAGs {
		t.Usable[plan.PortID{Switch: sw.Name, Name: l.Name}] = slices.ContainsFunc(l.Uplinks, func(name string) bool {
			return t.Usable[plan.PortID{Switch: sw.Name, Name: name}]
		})
	}
}

// Remembered returns the teams that an earlier agent saved, with every uplink taken as usable.
func Remembered(uses []failover.PortUse) *Teams {
	t := &Teams{Usable: map[plan.PortID]bool{}, Ports: make(map[plan.PortID]*Use, len(uses))}
	for _, u := range uses {
		t.Ports[u.ID] = &Use{Use: u.Use}
		for _, entry := range slices.Concat(u.Using, u.Resting) {
			t.Usable[plan.PortID{Switch: u.ID.Switch, Name: entry}] = true
		}
	}
	return t
}

// Remember returns what a later agent needs of the teams.
func (t *Teams) Remember(p *plan.Plan) []failover.PortUse {
	uses := make([]failover.PortUse, 0, len(t.Ports))
	for _, sw := range p.Switches {
		for _, p := range sw.Ports {
			if u, ok := t.Ports[p.ID]; ok {
				uses = append(uses, failover.PortUse{ID: p.ID, Use: u.Use})
			}
		}
	}
	return uses
}
