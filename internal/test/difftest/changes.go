package difftest

import (
	"time"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// step makes the next event.
func (g *generator) step() Step {
	if g.chance(6) {
		if s, ok := g.atTheLimit(); ok {
			return s
		}
	}
	if s, ok := g.followUp(); ok {
		return s
	}
	s := Step{After: g.advance()}
	g.clock += s.After
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
		if s.At = m.ID; m.Number == 0 && g.chance(40) {
			s.FromHost, s.Frame = true, g.hostFrame(m)
			break
		}
		s.Frame = g.frame(m)
	}
	return s
}

// followUp sends the frame that a change asks for, from anybody else in its domain.
func (g *generator) followUp() (s Step, ok bool) {
	for len(g.due) > 0 {
		f := g.due[0]
		g.due = g.due[1:]
		if m := g.member(f); m != nil && m.ID != f.at {
			f.at, f.src = m.ID, g.source(m)
			return Step{At: m.ID, Frame: g.assemble(m, f)}, true
		}
	}
	return s, false
}

// member is a connected one that may send in the domain of a frame on its switch, nil where a few tries find none.
func (g *generator) member(f sentFrame) *Member {
	for range 12 {
		if m := g.sender(); m.ID.Switch == f.at.Switch && g.maySend(m.ID, f.seg) {
			return m
		}
	}
	return nil
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
	uplinks := g.chance(25) // which send more than one of many ports
	for range 8 {
		if m := &g.state.Members[g.IntN(len(g.state.Members))]; !m.Absent && (!uplinks || m.Number == 0) {
			return m
		}
	}
	return &g.state.Members[g.IntN(len(g.state.Members))]
}

// change alters the state the way an operator, an owner or a cable does.
func (g *generator) change() {
	c := g.state.Config
	s := &c.Switches[g.IntN(len(c.Switches))]
	switch g.IntN(15) {
	case 14:
		g.changeLAG(s)
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
		g.changeUplink(s)
	case 6:
		g.removeOrAddPort(c)
	case 7, 9:
		g.takeOver()
	case 8:
		s.MTU = pick(g, 0, 1280, 1500, 2000, 9000)
	default:
		g.changeFacts()
	}
	if g.meters.IntN(3) == 0 {
		g.monitoring(c)
	}
	if g.bonded {
		g.changeKinship()
	}
	if g.migrates {
		g.waiting()
	}
}

// takeOver lets an adapter use the source of one of the latest frames, if that may have been learned and the adapter
// may change, and then sends a frame there.
func (g *generator) takeOver() {
	for range 24 {
		m := &g.state.Members[g.IntN(len(g.state.Members))]
		before, ok := g.before(m.ID.Switch)
		if !ok || m.Absent || before.at == m.ID || before.src[0] != g.station()[0] {
			continue
		}
		to, from := g.plan.Port(m.ID), g.plan.Port(before.at)
		if to == nil || from == nil || !to.Policy.MACChanges.V || !from.Policy.Learning.Enabled.V ||
			!member(to.Policy.VLAN.V, before.seg) {
			continue
		}
		m.SeenMAC = before.src
		g.due = append(g.due, sentFrame{at: before.at, dst: before.src, seg: before.seg})
		return
	}
}

func (g *generator) changeUplink(s *spec.Switch) {
	if len(s.Uplinks) == 0 {
		return
	}
	u := &s.Uplinks[g.IntN(len(s.Uplinks))]
	switch g.IntN(5) {
	case 0:
		u.Blocked = !u.Blocked
	case 1:
		u.Drained = !u.Drained
	case 2, 3:
		if u.VLANs = nil; g.chance(60) {
			u.VLANs = g.vlanList()
		}
	default:
		g.state.drop(plan.PortID{Switch: s.Name, Name: u.Name})
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
			c.Ports = append(c.Ports, spec.Port{Name: m.ID.Name, Switch: s.Name,
				PortGroup: pick(g, s.PortGroups...).Name, Device: "re" + m.ID.Name})
		}
	}
}

func (g *generator) changeFacts() {
	m := &g.state.Members[g.IntN(len(g.state.Members))]
	if m.Number != 0 {
		g.setFacts(m.ID, m, &g.state)
		return
	}
	switch g.IntN(9) {
	case 0, 1:
		m.Absent = !m.Absent
	case 8:
		m.HostTraffic = !m.HostTraffic
	case 6, 7:
		m.Out = g.out(50)
	case 2:
		m.MTU = pick(g, 1280, 1500, 2000, 9000)
		if g.chance(50) {
			m.DeviceMAC = pick(g, g.macs[m.ID.Switch]...)
		}
	default:
		m.Up = !m.Up
	}
}
