package dataplane

import (
	"fmt"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// compileTeam walks the port's team once for every value its hash can take (S42, S45, S46, D10), so that the program only
// indexes.
func (c *compiler) compileTeam(sw *plan.Switch, p *plan.Port, rec *abi.Port) error {
	t := p.Policy.Teaming
	active, standby := c.uplinkSlots(sw, t.Active.V), c.uplinkSlots(sw, t.Standby.V)
	reserve := firstUsable(standby)
	switch t.Policy.V {
	case spec.ExplicitOrder:
		rec.Uplink = firstUsable(active)
		if rec.Uplink == 0 {
			rec.Uplink = reserve
		}
		return nil
	case spec.OriginatingPort, spec.LoadBased:
		rec.Uplink = pick(active, p.Number, reserve)
		return nil
	case spec.SourceMAC:
		rec.TeamPolicy = abi.TeamSourceMAC
	case spec.IPHash:
		rec.TeamPolicy = abi.TeamIPHash
	default:
		return fmt.Errorf("unknown teaming policy %q", t.Policy.V)
	}
	var table abi.Team
	for h := range table.Uplink {
		table.Uplink[h] = pick(active, uint32(h), reserve)
	}
	i, ok := c.teamIndex[table]
	if !ok {
		i = uint16(len(c.img.teams))
		c.img.teams = append(c.img.teams, table)
		c.teamIndex[table] = i
	}
	rec.Team = i
	return nil
}

// UplinksInUse names, in the order of the switch, the uplinks that frames of p may leave by at present: one, or none when no
// uplink of its team is usable; with a hashing policy every uplink that some frame is hashed to.
func (d Desired) UplinksInUse(sw *plan.Switch, p *plan.Port) []string {
	s := newSlots()
	for i, u := range sw.Uplinks {
		s.ports[u.ID] = uint32(i + 1)
	}
	c := &compiler{d: d, slots: s, img: &image{}, teamIndex: map[abi.Team]uint16{}}
	names := []string{}
	var rec abi.Port
	if c.compileTeam(sw, p, &rec) != nil {
		return names
	}
	used := map[uint16]bool{rec.Uplink: true}
	for _, t := range c.img.teams {
		for _, slot := range t.Uplink {
			used[slot] = true
		}
	}
	for i, u := range sw.Uplinks {
		if used[uint16(i+1)] {
			names = append(names, u.ID.Name)
		}
	}
	return names
}

// uplinkSlots lists the uplinks by slot, 0 standing for one that is not usable at present.
func (c *compiler) uplinkSlots(sw *plan.Switch, names []string) []uint16 {
	out := make([]uint16, 0, len(names))
	for _, name := range names {
		id := plan.PortID{Switch: sw.Name, Name: name}
		f, _, ok := c.connected(id)
		if ok && f.Usable() {
			out = append(out, uint16(c.slots.ports[id]))
		} else {
			out = append(out, 0)
		}
	}
	return out
}

// pick takes entry h mod n, striking unusable entries one after the other, so that a choice moves only when the chosen
// uplink itself changes.
func pick(active []uint16, h uint32, reserve uint16) uint16 {
	left := append([]uint16(nil), active...)
	for len(left) > 0 {
		i := int(h % uint32(len(left)))
		if left[i] != 0 {
			return left[i]
		}
		left = append(left[:i], left[i+1:]...)
	}
	return reserve
}

func firstUsable(list []uint16) uint16 {
	for _, slot := range list {
		if slot != 0 {
			return slot
		}
	}
	return 0
}
