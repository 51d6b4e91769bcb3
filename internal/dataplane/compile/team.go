package compile

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// entry is an entry of a team's lists under the present facts.
type entry struct {
	name    string
	choice  uint16 // for the program; 0 if the entry is not usable
	resting bool   // S44
}

// compileTeam computes the port's choice for every possible hash (S42, S44–S47, D10), so that the program only needs an
// index.
func (c *compiler) compileTeam(sw *plan.Switch, p *plan.Port, f *plan.Fact, rec *abi.Port) error {
	t := &p.Policy.Teaming
	e := c.listsOf(sw, p, f)
	active, standby := e.active, e.standby
	switch t.Policy.V {
	case spec.ExplicitOrder:
		rec.Uplink = rested(func(rest bool) uint16 { return firstUsable(slices.Concat(active, standby), rest) })
		return nil
	case spec.LoadBased:
		rec.Uplink = rested(func(rest bool) uint16 {
			if i := slices.IndexFunc(active, func(e entry) bool {
				return e.name == f.Assigned &&
					e.usable(rest)
			}); i >= 0 {
				return active[i].choice
			}
			return walk(active, standby, p.Number, rest)
		})
		return nil
	case spec.OriginatingPort:
		rec.Uplink = rested(func(rest bool) uint16 { return walk(active, standby, p.Number, rest) })
		return nil
	case spec.SourceMAC:
		rec.TeamPolicy = abi.TeamSourceMAC
	case spec.IPHash:
		rec.TeamPolicy = abi.TeamIPHash
	default:
		return fmt.Errorf("unknown teaming policy %q", t.Policy.V)
	}
	if !e.walked {
		e.team, e.walked = c.hashed(sw, t, e, f.Resting), true
	}
	rec.Team = e.team
	return nil
}

// hashed returns the index of the table for a team that chooses by a hash.
func (c *compiler) hashed(sw *plan.Switch, t *plan.Teaming, e *entries, resting []string) uint16 {
	lists := teamLists{sw.Name, strings.Join(t.Active.V, "\x00") + "\x01" + strings.Join(t.Standby.V, "\x00") + "\x01" +
		strings.Join(resting, "\x00")}
	i, walked := c.teamOf[lists]
	if !walked {
		var table abi.Team
		for h := range table.Uplink {
			table.Uplink[h] = rested(func(rest bool) uint16 { return walk(e.active, e.standby, uint32(h), rest) })
		}
		i = c.team(table)
		c.teamOf[lists] = i
	}
	return i
}

// teamLists identifies teams whose choice by any hash is the same: a thousand ports share a few of them.
type teamLists struct{ switchName, lists string }

// rested makes a choice without resting entries and, only if that yields nothing, with them (S44).
func rested(choose func(rest bool) uint16) uint16 {
	if choice := choose(false); choice != 0 {
		return choice
	}
	return choose(true)
}

// team returns the index of the table, which it adds if it is new. There is space for one table for every port and
// every uplink, so they cannot run out: a LAG's table needs a member, which is in no other LAG.
func (c *compiler) team(table abi.Team) uint16 {
	i, ok := c.teamIndex[table]
	if !ok {
		i = uint16(len(c.img.Teams))
		c.img.Teams = append(c.img.Teams, table)
		c.teamIndex[table] = i
	}
	return i
}

// entries are the lists of a team under the present facts.
type entries struct {
	active, standby []entry
	// team is the index of the team's table once it has been compiled.
	team   uint16
	walked bool
}

// listsOf returns the entries of the port's team. Ports with the same policy share them, unless an entry rests for one
// of the ports.
func (c *compiler) listsOf(sw *plan.Switch, p *plan.Port, f *plan.Fact) *entries {
	if e, ok := c.lists[p.Policy]; ok && len(f.Resting) == 0 {
		return e
	}
	t := &p.Policy.Teaming
	e := &entries{active: c.entries(sw, t.Active.V, f.Resting), standby: c.entries(sw, t.Standby.V, f.Resting)}
	if len(f.Resting) == 0 {
		c.lists[p.Policy] = e
	}
	return e
}

// entries returns the entries of a list, in its order.
func (c *compiler) entries(sw *plan.Switch, names, resting []string) []entry {
	out := make([]entry, 0, len(names))
	for _, name := range names {
		e := entry{name: name, choice: c.uplinkSlot(sw, name), resting: slices.Contains(resting, name)}
		if g := sw.LAG(name); g != nil {
			e.choice = c.lagChoice(sw, g)
		}
		out = append(out, e)
	}
	return out
}

// uplinkSlot returns the uplink's slot, 0 if it is not usable at present, or not in the switch.
func (c *compiler) uplinkSlot(sw *plan.Switch, name string) uint16 {
	id := plan.PortID{Switch: sw.Name, Name: name}
	u := sw.Uplink(name)
	if f, _, ok := c.connected(id); !ok || u == nil || !u.Usable(f) {
		return 0
	}
	return uint16(c.slots.Ports[id])
}

// lagChoice returns the LAG in the program's form, with the table of its members (S52); 0 if no member is usable.
func (c *compiler) lagChoice(sw *plan.Switch, g *plan.LAG) uint16 {
	members := make([]entry, len(g.Uplinks))
	for i, name := range g.Uplinks {
		members[i].choice = c.uplinkSlot(sw, name)
	}
	var table abi.Team
	for h := range table.Uplink {
		table.Uplink[h] = pick(members, uint32(h), true)
	}
	if table.Uplink[0] == 0 {
		return 0
	}
	return abi.LAGChoice | lagHash(g.Hash) | c.team(table)
}

// lagHash returns the fields that go into the hash of a LAG; the MACs if the configuration says nothing.
func lagHash(h spec.LAGHash) uint16 {
	switch h {
	case spec.HashIP:
		return abi.LAGHashIP
	case spec.HashIPVLAN:
		return abi.LAGHashIP | abi.LAGHashVLAN
	case spec.HashIPPort:
		return abi.LAGHashIP | abi.LAGHashPort
	case spec.HashIPPortVLAN:
		return abi.LAGHashIP | abi.LAGHashPort | abi.LAGHashVLAN
	}
	return 0
}

// UplinksInUse returns, in the order of the switch, the uplinks by which frames of p may leave at present: one, or none
// if no uplink of its team is usable; with a hashing policy or a LAG, every uplink to which some hash leads.
func UplinksInUse(d binding.Desired, sw *plan.Switch, p *plan.Port) []string {
	if p.VNI != 0 {
		if sw.Tunnel == nil || !d.Facts[sw.Tunnel.ID].Usable() {
			return []string{}
		}
		return []string{spec.TunnelName}
	}
	s := NewSlots()
	for i, u := range sw.Uplinks {
		s.Ports[u.ID] = uint32(i + 1)
	}
	c := &compiler{d: d, slots: s, img: &Image{}, teamIndex: map[abi.Team]uint16{}, teamOf: map[teamLists]uint16{},
		lists: map[*plan.Effective]*entries{}}
	names := []string{}
	var rec abi.Port
	f := d.Facts[p.ID]
	if c.compileTeam(sw, p, &f, &rec) != nil {
		return names
	}
	used := map[uint16]bool{}
	if rec.TeamPolicy == abi.TeamFixed {
		c.leadsTo(rec.Uplink, used)
	} else {
		for _, choice := range c.img.Teams[rec.Team].Uplink {
			c.leadsTo(choice, used)
		}
	}
	for i, u := range sw.Uplinks {
		if used[uint16(i+1)] {
			names = append(names, u.ID.Name)
		}
	}
	return names
}

// leadsTo adds the slots of the uplinks that a choice can lead to.
func (c *compiler) leadsTo(choice uint16, used map[uint16]bool) {
	if choice&abi.LAGChoice == 0 {
		used[choice] = true
		return
	}
	for _, slot := range c.img.Teams[choice&abi.LAGMembers].Uplink {
		used[slot] = true
	}
}

// usable: a resting uplink is usable only if rest is given.
func (e entry) usable(rest bool) bool { return e.choice != 0 && (rest || !e.resting) }

// walk picks an entry of the active list by the hash, else the first usable one of the standby list (S45).
func walk(active, standby []entry, h uint32, rest bool) uint16 {
	if choice := pick(active, h, rest); choice != 0 {
		return choice
	}
	return firstUsable(standby, rest)
}

// pick takes entry h mod n. While the taken entry is unusable, it removes that entry and takes again, so that a choice
// changes only when the chosen entry itself does; 0 if none is left.
func pick(list []entry, h uint32, rest bool) uint16 {
	left := slices.Clone(list)
	for len(left) > 0 {
		i := int(h % uint32(len(left)))
		if left[i].usable(rest) {
			return left[i].choice
		}
		left = slices.Delete(left, i, i+1)
	}
	return 0
}

func firstUsable(list []entry, rest bool) uint16 {
	for _, e := range list {
		if e.usable(rest) {
			return e.choice
		}
	}
	return 0
}
