package difftest

import "heddle/internal/plan"

// waiting begins or ends waits of ports for their guests (S99), or lets a port come in the place of another, with its
// MAC. It has random numbers of its own, so that the cases of earlier seeds stay what they were.
func (g *generator) waiting() {
	for range 1 + g.waits.IntN(2) {
		m := &g.state.Members[g.waits.IntN(len(g.state.Members))]
		if m.Number == 0 {
			continue
		}
		switch g.waits.IntN(4) {
		case 0, 1:
			g.lastWait++
			m.Wait, m.Left, m.Awake = g.lastWait, g.lastWait%2 == 0, false
		case 2:
			m.Awake = m.Wait != 0
		default:
			g.comeBeside(m)
		}
	}
}

// comeBeside gives the port the MAC of another port of its switch, and makes it wait.
func (g *generator) comeBeside(m *Member) {
	for range 8 {
		o := &g.state.Members[g.waits.IntN(len(g.state.Members))]
		other := g.plan.Port(o.ID)
		if other == nil || o.ID == m.ID || o.ID.Switch != m.ID.Switch || other.InitialMAC.IsZero() {
			continue
		}
		g.lastWait++
		m.InitialMAC, m.SeenMAC, m.Wait = other.InitialMAC, plan.MAC{}, g.lastWait
		m.Left, m.Awake = false, false
		return
	}
}
