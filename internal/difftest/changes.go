package difftest

import (
	"time"

	"heddle/internal/spec"
)

// step makes the next event.
func (g *generator) step() Step {
	s := Step{After: g.advance()}
	switch r := g.IntN(1000); {
	case r < 12:
		s.Sweep = true
	case r < 32:
		for range 1 + g.IntN(3) {
			g.change()
		}
		g.settle()
		next := g.state.clone()
		s.Change = &next
	default:
		m := g.sender()
		s.At, s.Frame = m.ID, g.frame(m)
	}
	return s
}

// advance is the time to the next event: mostly none or little, now and then just at a limit of the rules.
func (g *generator) advance() time.Duration {
	switch r := g.IntN(100); {
	case r < 65:
		return 0
	case r < 92:
		return time.Duration(g.IntN(25)) * time.Millisecond
	case r < 97:
		return time.Second + time.Duration(g.IntN(3)-1)*time.Millisecond
	case r < 99:
		return g.aged + time.Duration(g.IntN(3)-1)*time.Millisecond
	}
	return pick(g, ages...)
}

// sender picks where the next frame comes from; now and then something that is not connected, which must not matter.
func (g *generator) sender() *Member {
	for range 8 {
		if m := &g.state.Members[g.IntN(len(g.state.Members))]; !m.Absent {
			return m
		}
	}
	return &g.state.Members[g.IntN(len(g.state.Members))]
}

// change alters the state the way an operator, an owner or a cable does.
func (g *generator) change() {
	c := g.state.Config
	s := &c.Switches[g.IntN(len(c.Switches))]
	switch g.IntN(10) {
	case 0, 1:
		pg := &s.PortGroups[g.IntN(len(s.PortGroups))]
		pg.Policy = g.policy(s, false)
	case 2:
		pg := &s.PortGroups[g.IntN(len(s.PortGroups))]
		pg.VLAN = g.vlan()
	case 3:
		s.Checks = g.checks()
	case 4:
		g.changePort(c)
	case 5:
		if len(s.Uplinks) > 0 {
			u := &s.Uplinks[g.IntN(len(s.Uplinks))]
			u.Blocked = !u.Blocked
		}
	case 6:
		g.removeOrAddPort(c)
	default:
		g.changeFacts()
	}
}

func (g *generator) changePort(c *spec.Config) {
	if len(c.Ports) == 0 {
		return
	}
	p := &c.Ports[g.IntN(len(c.Ports))]
	s := g.switchOf(c, p)
	switch g.IntN(3) {
	case 0:
		p.Policy = g.policy(s, false)
	case 1:
		p.PortGroup = pick(g, s.PortGroups...).Name
	default:
		p.TxUplink = !p.TxUplink
	}
}

func (g *generator) switchOf(c *spec.Config, p *spec.Port) *spec.Switch {
	for i := range c.Switches {
		if c.Switches[i].Name == p.Switch {
			return &c.Switches[i]
		}
	}
	return nil
}

// removeOrAddPort takes a port out of the configuration, or brings one back that was taken out: a new one, then.
func (g *generator) removeOrAddPort(c *spec.Config) {
	i := g.IntN(len(g.state.Members))
	m := &g.state.Members[i]
	if m.Number == 0 {
		return
	}
	for k := range c.Ports {
		if c.Ports[k].Name == m.ID.Name {
			if len(c.Ports) > 1 {
				c.Ports = append(c.Ports[:k], c.Ports[k+1:]...)
			}
			return
		}
	}
	for k := range c.Switches {
		if s := &c.Switches[k]; s.Name == m.ID.Switch {
			c.Ports = append(c.Ports, spec.Port{Name: m.ID.Name, Switch: s.Name, PortGroup: pick(g, s.PortGroups...).Name, Device: "re" + m.ID.Name})
		}
	}
}

func (g *generator) changeFacts() {
	m := &g.state.Members[g.IntN(len(g.state.Members))]
	if m.Number != 0 {
		g.setFacts(m.ID, m, &g.state)
		return
	}
	switch g.IntN(3) {
	case 0:
		m.Absent = !m.Absent
	default:
		m.Up = !m.Up
	}
}
