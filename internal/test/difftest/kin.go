package difftest

import (
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// kinship gives ports owners, mostly with a policy under which the ports of one owner may use each other's MACs (S111),
// and lets adapters take such a MAC. It has random numbers of its own, so that the cases of earlier seeds stay what
// they were.
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
			g.bond(m)
		}
	}
}

// bond lets an adapter take the MAC of another of the same owner, whose link may go down.
func (g *generator) bond(m *Member) {
	other := g.relative(m)
	if other == nil {
		return
	}
	m.SeenMAC = other.InitialMAC
	for i := range g.state.Members {
		if o := &g.state.Members[i]; o.ID == other.ID && g.kin.IntN(3) == 0 {
			o.Up = false
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
	g.bond(&g.state.Members[g.kin.IntN(len(g.state.Members))])
}

// relative is a port of the same owner as a member, which has a MAC; nil where a few tries find none.
func (g *generator) relative(m *Member) *plan.Port {
	me := g.plan.Port(m.ID)
	if me == nil || me.Owner == "" {
		return nil
	}
	ports := g.plan.Switch(m.ID.Switch).Ports
	for range 4 {
		p := ports[g.kin.IntN(len(ports))]
		if p != me && p.Owner == me.Owner && !p.InitialMAC.IsZero() {
			return p
		}
	}
	return nil
}
