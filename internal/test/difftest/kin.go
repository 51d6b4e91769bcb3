package difftest

import (
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// kinship gives ports owners, mostly with a policy under which the ports of one owner may use each other's MACs (S111), and lets adapters
// take such a MAC. It has random numbers of its own, so that the cases of earlier seeds stay what they were.
func (g *generator) kinship() {
	ports := g.state.Config.Ports
	for i := range ports {
		p := &ports[i]
		switch g.kin.IntN(5) {
		case 0:
			continue
		case 1:
			p.Owner = "b"
		default:
			p.Owner = "a"
		}
		if g.kin.IntN(4) > 0 {
			p.Policy.Security.MACChanges, p.Policy.Security.ForgedTransmits = spec.Accept, spec.Accept
		}
	}
	for i := range g.state.Members {
		if m := &g.state.Members[i]; g.kin.IntN(3) == 0 {
			if mac, ok := g.relative(m); ok {
				m.SeenMAC = mac
			}
		}
	}
}

// changeKinship gives a port another owner, or its adapter the MAC of one of the same owner.
func (g *generator) changeKinship() {
	if g.kin.IntN(3) == 0 {
		p := &g.state.Config.Ports[g.kin.IntN(len(g.state.Config.Ports))]
		p.Owner = []string{"", "a", "a", "b"}[g.kin.IntN(4)]
		return
	}
	m := &g.state.Members[g.kin.IntN(len(g.state.Members))]
	if mac, ok := g.relative(m); ok {
		m.SeenMAC = mac
	}
}

// relative is the MAC of a port of the same owner as a member.
func (g *generator) relative(m *Member) (plan.MAC, bool) {
	me := g.plan.Port(m.ID)
	if me == nil || me.Owner == "" {
		return plan.MAC{}, false
	}
	ports := g.plan.Switch(m.ID.Switch).Ports
	for range 4 {
		p := ports[g.kin.IntN(len(ports))]
		if p != me && p.Owner == me.Owner && !p.InitialMAC.IsZero() {
			return p.InitialMAC, true
		}
	}
	return plan.MAC{}, false
}
