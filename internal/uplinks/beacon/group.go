package beacon

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Limits, with the values of ESXi (Net.MaxBeaconVlans, Net.MaxBeaconsAtOnce).
const (
	MaxVLANs    = 100 // of a group
	MaxPerCycle = 100 // beacons of a group
)

// Group is a set of uplinks that should hear each other: those of one switch's teams with beacon probing that share
// uplinks. LAGs take no part: a physical switch sends a beacon to any of their links, and LACP watches each link by
// itself.
type Group struct {
	Switch string
	// Members are in the order of the switch; there are at least two.
	Members []Member
	// VLANs are the VLANs of the ports of these teams, at most MaxVLANs: untagged and access VLANs first, then those of
	// trunks. VLANs of 802.1ad trunks are left out.
	VLANs []uint16
}

// Member is an uplink of a group.
type Member struct {
	ID    plan.PortID
	VLANs plan.VLANSet // VLANs that it carries
}

// Groups returns the groups of a switch. An uplink is in at most one group.
func Groups(sw *plan.Switch) []Group {
	var sets []*team
	for _, p := range sw.Ports {
		if p.Policy.Teaming.FailureDetection.V == spec.DetectBeacon {
			sets = merge(sets, teamOf(sw, p))
		}
	}
	var groups []Group
	for _, t := range sets {
		g := Group{Switch: sw.Name, VLANs: t.vlans()}
		for _, u := range sw.Uplinks {
			if slices.Contains(t.uplinks, u.ID.Name) {
				g.Members = append(g.Members, Member{u.ID, u.VLANs})
			}
		}
		if len(g.Members) > 1 && len(g.VLANs) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// team is the set of uplinks of one or more ports' teams, with those ports' VLANs.
type team struct {
	uplinks        []string
	access, trunks plan.VLANSet
}

func teamOf(sw *plan.Switch, p *plan.Port) *team {
	t := &team{}
	for _, name := range slices.Concat(p.Policy.Teaming.Active.V, p.Policy.Teaming.Standby.V) {
		if sw.LAG(name) == nil {
			t.uplinks = append(t.uplinks, name)
		}
	}
	switch v := p.Policy.VLAN.V; v.Mode {
	case plan.VLANNone:
		t.access.AddRange(0, 0)
	case plan.VLANAccess:
		t.access.AddRange(v.ID, v.ID)
	case plan.VLANTrunk:
		if v.Set.Has(0) {
			t.access.AddRange(0, 0)
		}
		if !v.AD {
			t.trunks = v.Set
		}
	}
	return t
}

// merge adds a team, and joins all teams that share an uplink with it.
func merge(sets []*team, t *team) []*team {
	apart := slices.DeleteFunc(sets, func(o *team) bool {
		if !slices.ContainsFunc(o.uplinks, func(u string) bool { return slices.Contains(t.uplinks, u) }) {
			return false
		}
		for _, u := range o.uplinks {
			if !slices.Contains(t.uplinks, u) {
				t.uplinks = append(t.uplinks, u)
			}
		}
		for i := range t.access {
			t.access[i] |= o.access[i]
			t.trunks[i] |= o.trunks[i]
		}
		return true
	})
	return append(apart, t)
}

func (t *team) vlans() (list []uint16) {
	for v := uint16(0); v < 4095 && len(list) < MaxVLANs; v++ {
		if t.access.Has(v) {
			list = append(list, v)
		}
	}
	for v := uint16(0); v < 4095 && len(list) < MaxVLANs; v++ {
		if t.trunks.Has(v) && !t.access.Has(v) {
			list = append(list, v)
		}
	}
	return list
}

// cycles returns how many cycles it takes to send in every VLAN, if each cycle sends at most MaxPerCycle beacons over
// this many uplinks.
func (g *Group) cycles(uplinks int) int {
	per := g.perCycle(uplinks)
	return (len(g.VLANs) + per - 1) / per
}

func (g *Group) perCycle(uplinks int) int { return max(1, MaxPerCycle/max(1, uplinks)) }
