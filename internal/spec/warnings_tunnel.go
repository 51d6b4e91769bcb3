package spec

import (
	"net/netip"
	"slices"
)

// tunnelWarnings says what a tunnel, which is at a, asks for in vain.
func (s *Switch) tunnelWarnings(a at, warn func(a at, format string, args ...any)) {
	t := s.Tunnel
	if t == nil {
		return
	}
	vnis := map[int]bool{}
	for i := range s.PortGroups {
		if o := s.PortGroups[i].Overlay; o != nil {
			vnis[o.VNI] = true
		}
	}
	if len(vnis) > 0 && len(t.Endpoints) == 0 {
		warn(a, "it has no endpoint on this host, so nothing leaves by it: name this host's address under endpoints")
	}
	families := t.families()
	for i := range t.Peers {
		p := &t.Peers[i]
		p1 := a.field("peers").item(i, p.Label())
		if addr, err := netip.ParseAddr(p.Address); err == nil && len(families) > 0 &&
			!slices.Contains(families, addr.Is4()) {
			warn(p1.field("address"), "%s: this host has no %s endpoint, so no frame reaches this peer: give the "+
				"tunnel one of that family", p.Address, map[bool]string{true: "IPv4", false: "IPv6"}[addr.Is4()])
		}
		for k, m := range p.MACs {
			if !vnis[m.VNI] {
				warn(p1.field("macs").item(k, "").field("vni"), "%d: no port group of this switch has this VNI", m.VNI)
			}
		}
	}
}

// families are those of the endpoints, true for IPv4; none if one of them is not known from the file.
func (t *Tunnel) families() (list []bool) {
	for i := range t.Endpoints {
		addr, err := netip.ParseAddr(t.Endpoints[i].Address)
		if err != nil {
			return nil
		}
		list = append(list, addr.Is4())
	}
	return list
}
