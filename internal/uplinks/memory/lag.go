package memory

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/lacp"
)

// LAG is the remembered state of a LAG, so that a restart of the agent does not take the LAG apart.
type LAG struct {
	ID plan.PortID `json:"id"` // switch and LAG
	// Devices are the ifindexes of the members' devices to which Snapshot applies, by the uplink's name.
	Devices map[string]uint32 `json:"devices,omitzero"`
	// Snapshot also has the LAG's system and its members' port numbers, which never change once they were given.
	Snapshot lacp.Snapshot `json:"snapshot"`
}

// LAGDevice is what a LAG needs to know of a member's device.
type LAGDevice struct {
	Index uint32 // ifindex
	MAC   plan.MAC
}

// portPriority is the LACP port priority of every member, and systemPriority that of every LAG: the usual default.
const (
	portPriority   = 255
	systemPriority = 32768
)

// LAG returns the remembered state of a LAG, nil for nothing.
func (m *Memory) LAG(id plan.PortID) *LAG {
	for i := range m.LAGs {
		if m.LAGs[i].ID == id {
			return &m.LAGs[i]
		}
	}
	return nil
}

// KeepLAGs gives every LAG of the plan its system and port numbers. It removes nothing, because the plan may yet be
// refused.
func (m *Memory) KeepLAGs(p *plan.Plan, devices map[plan.PortID]LAGDevice) {
	for _, sw := range p.Switches {
		for _, g := range sw.LAGs {
			id := plan.PortID{Switch: sw.Name, Name: g.Name}
			if m.LAG(id) == nil {
				m.LAGs = append(m.LAGs, LAG{ID: id})
			}
			st := m.LAG(id)
			st.number(g)
			st.chooseSystem(g, devices)
			m.chooseKey(st)
		}
	}
}

// ForgetLAGs removes the LAGs and members that the active plan does not have.
func (m *Memory) ForgetLAGs(p *plan.Plan) {
	m.LAGs = slices.DeleteFunc(m.LAGs, func(st LAG) bool {
		sw := p.Switch(st.ID.Switch)
		return sw == nil || sw.LAG(st.ID.Name) == nil
	})
	for i := range m.LAGs {
		st := &m.LAGs[i]
		g := p.Switch(st.ID.Switch).LAG(st.ID.Name)
		st.Snapshot.Members = slices.DeleteFunc(st.Snapshot.Members, func(o lacp.MemberSnapshot) bool {
			return !slices.Contains(g.Uplinks, o.Name)
		})
	}
}

// number gives members port numbers from 1. A member keeps its number as long as it is in the LAG.
func (st *LAG) number(g *plan.LAG) {
	for _, name := range g.Uplinks {
		if slices.ContainsFunc(st.Snapshot.Members, func(m lacp.MemberSnapshot) bool { return m.Name == name }) {
			continue
		}
		n := uint16(1)
		for slices.ContainsFunc(st.Snapshot.Members, func(m lacp.MemberSnapshot) bool { return m.Port.Number == n }) {
			n++
		}
		st.Snapshot.Members = append(st.Snapshot.Members,
			lacp.MemberSnapshot{Name: name, Port: lacp.Port{Priority: portPriority, Number: n}})
	}
}

// chooseSystem takes the MAC of the first member that has a device as the LAG's system id: no other host has it, unlike
// one derived from a machine id that a cloned image may share. The id stays, even if that device goes, so that the
// other members stay in use.
func (st *LAG) chooseSystem(g *plan.LAG, devices map[plan.PortID]LAGDevice) {
	for _, name := range g.Uplinks {
		if !st.Snapshot.System.MAC.IsZero() {
			return
		}
		st.Snapshot.System = lacp.System{Priority: systemPriority,
			MAC: devices[plan.PortID{Switch: st.ID.Switch, Name: name}].MAC}
	}
}

// chooseKey takes the lowest key that no other LAG has: a device may move from one LAG to another, which then has the
// same system id.
func (m *Memory) chooseKey(st *LAG) {
	taken := func(k uint16) bool {
		return slices.ContainsFunc(m.LAGs, func(o LAG) bool { return o.ID != st.ID && o.Snapshot.Key == k })
	}
	for st.Snapshot.Key == 0 || taken(st.Snapshot.Key) {
		st.Snapshot.Key++
	}
}

// Config returns the LACP configuration of a LAG of the switch.
func (st *LAG) Config(sw *plan.Switch, g *plan.LAG) lacp.Config {
	c := lacp.Config{System: st.Snapshot.System, Key: st.Snapshot.Key, Active: g.Mode == spec.LACPActive,
		Fast:     g.Timeout == spec.LACPFast,
		Fallback: lacp.Fallback(g.Fallback)}
	for _, name := range g.Uplinks {
		if u := sw.Uplink(name); u != nil && u.Drained {
			c.Drained = append(c.Drained, name)
		}
		for _, m := range st.Snapshot.Members {
			if m.Name == name {
				c.Members = append(c.Members, lacp.Member{Name: name, Port: m.Port})
			}
		}
	}
	return c
}

// Saved returns the part of the snapshot whose members still have the same device.
func (st *LAG) Saved(devices map[plan.PortID]LAGDevice) lacp.Snapshot {
	s := st.Snapshot
	s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(m lacp.MemberSnapshot) bool {
		d, ok := devices[plan.PortID{Switch: st.ID.Switch, Name: m.Name}]
		return !ok || d.Index == 0 || st.Devices[m.Name] != d.Index
	})
	return s
}

// Remember saves the LACP state of the members whose device is still the same.
func (st *LAG) Remember(s lacp.Snapshot, devices map[string]uint32) {
	if s.System != st.Snapshot.System || s.Key != st.Snapshot.Key {
		return
	}
	for i, old := range st.Snapshot.Members {
		for _, m := range s.Members {
			if m.Name == old.Name && m.Port == old.Port {
				st.Snapshot.Members[i] = m
			}
		}
	}
	st.Devices = devices
}
