package plan

import "slices"

// Members returns how many uplinks, tunnels and ports there are on all switches.
func (p *Plan) Members() (n int) {
	for _, s := range p.Switches {
		n += len(s.Uplinks) + len(s.Ports)
		if s.Tunnel != nil {
			n++
		}
	}
	return n
}

// Switch returns the switch of that name, nil if there is none.
func (p *Plan) Switch(name string) *Switch {
	for _, s := range p.Switches {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Uplink returns the switch's uplink of that name, nil if there is none.
func (s *Switch) Uplink(name string) *Uplink {
	for _, u := range s.Uplinks {
		if u.ID.Name == name {
			return u
		}
	}
	return nil
}

// LAG returns the LAG of that name, nil if there is none.
func (s *Switch) LAG(name string) *LAG {
	for _, g := range s.LAGs {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// LAGOf returns the LAG that has the uplink as a member, nil if there is none.
func (s *Switch) LAGOf(uplink string) *LAG {
	for _, g := range s.LAGs {
		if slices.Contains(g.Uplinks, uplink) {
			return g
		}
	}
	return nil
}

// Port returns the port of that id, nil if there is none.
func (p *Plan) Port(id PortID) *Port {
	if s := p.Switch(id.Switch); s != nil {
		for _, port := range s.Ports {
			if port.ID == id {
				return port
			}
		}
	}
	return nil
}

// Family names the group of ports of a switch that may use each other's MACs (S111): those of one owner that may forge
// and change MACs. "" if the port is in none.
func (p *Port) Family() string {
	if p.Policy.ForgedTransmits.V && p.Policy.MACChanges.V {
		return p.Owner
	}
	return ""
}

// Uplink returns the uplink of that id, nil if there is none.
func (p *Plan) Uplink(id PortID) *Uplink {
	if s := p.Switch(id.Switch); s != nil {
		return s.Uplink(id.Name)
	}
	return nil
}
