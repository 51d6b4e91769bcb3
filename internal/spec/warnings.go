package spec

import "fmt"

// Warnings are the things a valid configuration asks for that come to nothing as it stands, one line each.
func (c *Config) Warnings() []string {
	v := newValidator(c)
	var lines []string
	for i := range c.Switches {
		s := &c.Switches[i]
		x := at{}.field("switches").item(i, s.Name).field("ipfix")
		warn := func(a at, format string, args ...any) {
			lines = append(lines, v.where(a)+a.show()+": "+fmt.Sprintf(format, args...))
		}
		s.tunnelWarnings(at{}.field("switches").item(i, s.Name).field("tunnel"), warn)
		for k := range c.Ports {
			if p := &c.Ports[k]; p.Switch == s.Name && p.ActualRole() == VNIC && c.guards(s, p) && !p.hasAddresses() {
				warn(at{}.field("ports").item(k, p.Name), "the address guard is on, and the port lists no address: "+
					"its guest can't do more than ask for one; "+
					"list its own under security: {addressGuard: {addresses: […]}}")
			}
		}
		if len(s.IPFIX.Collectors) > 0 && !c.meters(s) {
			warn(x.field("collectors"), "nothing is metered on this switch: set monitoring: {ipfix: true} under "+
				"defaults, or at a port group, port or uplink")
		}
		for k, collector := range s.IPFIX.Collectors {
			a := x.field("collectors").item(k, "")
			if s.IPFIX.SwitchIPAddress != "" && collector.IsIPv6() {
				warn(a.field("address"), "%s: an IPv6 collector is sent to from the host's own address: "+
					"switchIpAddress is for IPv4 alone", collector.Address)
			}
		}
	}
	return lines
}

// guards reports whether the port's addresses are guarded.
func (c *Config) guards(s *Switch, p *Port) (on bool) {
	levels := []*Policy{&s.Defaults}
	for i := range s.PortGroups {
		if s.PortGroups[i].Name == p.PortGroup {
			levels = append(levels, &s.PortGroups[i].Policy)
		}
	}
	for _, l := range append(levels, &p.Policy) {
		if own := l.Security.AddressGuard.Enabled; own != nil {
			on = *own
		}
	}
	return on
}

// hasAddresses reports whether addresses are listed at the port.
func (p *Port) hasAddresses() bool {
	list := p.Security.AddressGuard.Addresses
	return list != nil && len(*list) > 0
}

// meters reports whether any level of the switch's policies has flows metered, or lets a port that is connected later
// ask for it.
func (c *Config) meters(s *Switch) bool {
	on := func(m Monitoring) bool { return m.IPFIX != nil && *m.IPFIX }
	if on(s.Defaults.Monitoring) {
		return true
	}
	for i := range s.PortGroups {
		if g := &s.PortGroups[i]; on(g.Monitoring) || g.Overrides.Monitoring {
			return true
		}
	}
	for i := range s.Uplinks {
		if on(s.Uplinks[i].Monitoring) {
			return true
		}
	}
	if s.Tunnel != nil && on(s.Tunnel.Monitoring) {
		return true
	}
	for i := range c.Ports {
		if c.Ports[i].Switch == s.Name && on(c.Ports[i].Monitoring) {
			return true
		}
	}
	return false
}
