package difftest

import (
	"slices"

	"heddle/internal/spec"
)

// policy rolls a policy for a level of a switch; fields left out are inherited.
func (g *generator) policy(s *spec.Switch, defaults bool) spec.Policy {
	p := spec.Policy{Security: g.security(s)}
	if g.chance(80) {
		p.VLAN = g.vlan()
	}
	if g.chance(4) {
		p.Blocked = g.flag(70)
	}
	if g.chance(25) {
		p.StormControl = g.stormControl()
	}
	if len(s.Uplinks) > 0 && g.chance(60) {
		p.Teaming = g.teaming(s)
	}
	if defaults { // a switch that blocks everything by default tells nothing
		p.Blocked = nil
	}
	return p
}

func (g *generator) flag(percent int) *bool {
	b := g.chance(percent)
	return &b
}

func (g *generator) answer(inherit, accept int) spec.Answer {
	switch {
	case g.chance(inherit):
		return ""
	case g.chance(accept):
		return spec.Accept
	}
	return spec.Reject
}

func (g *generator) security(s *spec.Switch) spec.Security {
	sec := spec.Security{
		Promiscuous: g.answer(40, 50), MACChanges: g.answer(40, 60), ForgedTransmits: g.answer(20, 80),
	}
	if g.chance(50) {
		pass := slices.DeleteFunc(spec.LinkControls(), func(string) bool { return g.chance(50) })
		sec.GuestLinkControl = &pass
	}
	if s.Kind == spec.Standard || g.chance(30) {
		return sec
	}
	l := &sec.MACLearning
	l.Enabled = g.flag(85)
	if g.chance(60) {
		limit := g.IntN(5)
		l.Limit = &limit
	}
	if g.chance(60) {
		l.LimitPolicy = pick(g, spec.LimitAllow, spec.LimitDrop)
	}
	if g.chance(80) {
		l.Ageing = pick(g, g.aged, g.aged, pick(g, ages...)).String()
	}
	if g.chance(60) {
		l.UnicastFlooding = g.flag(50)
	}
	return sec
}

// stormControl rolls rates that the frames of a case reach: a few a second, or one every few milliseconds with little
// room.
func (g *generator) stormControl() (s spec.StormControl) {
	for _, f := range []**int{&s.Broadcast, &s.Multicast, &s.UnknownUnicast} {
		if g.chance(50) {
			n := pick(g, 0, 1, 1+g.IntN(5), 1+g.IntN(300))
			*f = &n
		}
	}
	if g.chance(60) {
		s.Burst = pick(g, "10ms", "10ms", "100ms", "333ms", "2s")
	}
	return s
}

func (g *generator) vlan() *spec.VLAN {
	switch g.IntN(4) {
	case 0:
		return &spec.VLAN{None: true}
	case 1:
		return &spec.VLAN{Access: int(max(1, pick(g, g.vlans...)))}
	}
	v := &spec.VLAN{Trunk: g.vlanList()}
	if g.chance(35) {
		v.Outer = "802.1ad"
	}
	return v
}

// teaming rolls the whole of a team: every uplink and LAG is active, standby or unused, in any order. A LAG is active
// alone.
func (g *generator) teaming(s *spec.Switch) spec.Teaming {
	policies := []spec.TeamingPolicy{spec.OriginatingPort, spec.SourceMAC, spec.IPHash, spec.ExplicitOrder}
	if s.Kind == spec.Distributed {
		policies = append(policies, spec.LoadBased, spec.LoadBased)
	}
	t := spec.Teaming{Policy: pick(g, policies...)}
	active, standby := []string{}, []string{}
	names := entries(s)
	for _, i := range g.Perm(len(names)) {
		lag := s.LAG(names[i]) != nil
		switch r := g.IntN(5); {
		case r == 0:
		case r > 1 && lag && len(active) == 0:
			active = append(active, names[i])
		case r > 1 && !lag && (len(active) == 0 || s.LAG(active[0]) == nil):
			active = append(active, names[i])
		case t.Policy != spec.IPHash: // which needs every uplink it uses active
			standby = append(standby, names[i])
		}
	}
	t.Active, t.Standby = &active, &standby
	return t
}
