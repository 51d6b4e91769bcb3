package spec

import (
	"fmt"
	"net/netip"

	"heddle/internal/spec/known"
)

// port checks p at a, against the switches and the ports claimed so far.
func (v *validator) port(a at, p *Port) {
	v.portName(a, p)
	if v.connecting && v.cfg.members() >= MaxMembers {
		v.fault(a, "", "this host can have at most %d ports and uplinks, and has as many", MaxMembers)
	}
	i, g := v.attachment(a, p)
	enum(v, a, "role", p.Role, VNIC, Host)
	v.portDevice(a, p)
	if p.MAC != "" || v.written(a, "mac") {
		v.portMAC(a, p, i)
	}
	v.hostOnly(a, p, i)
	v.portGuest(a, p)
	if p.Monitor != (Monitor{}) || v.written(a, "monitor") {
		v.monitor(a, p)
	}
	if i < 0 {
		return
	}
	s := &v.cfg.Switches[i]
	chain := []level{{policy: &s.Defaults, kind: "switch", name: s.Name}}
	if g != nil {
		chain = append(chain, level{policy: &g.Policy, kind: "port group", name: g.Name})
		v.overrides(a, p, g)
		if g.Overlay != nil && p.VLAN != nil && len(p.VLAN.Trunk) > 0 {
			tunnelRules{v}.trunkInside(a.field("vlan"), p.VLAN)
		}
		if g.Overlay != nil && p.TxUplink {
			v.fault(a.field("txUplink"), "true", "port group %s is an overlay segment, whose frames leave by the "+
				"tunnel: leave txUplink out", g.Name)
		}
	}
	v.policy(i, append(chain, level{at: a, policy: &p.Policy, kind: "port", name: p.Name}))
}

func (v *validator) portName(a at, p *Port) {
	v.name(a, p.Name)
	first, dup := v.ports[p.Name]
	switch {
	case !dup || p.Name == "":
	case !v.connecting:
		v.fault(a.field("name"), shown(p.Name), "another port has this name%s: names of ports differ on a host",
			v.line(at{}.field("ports").item(first, "").field("name")))
	case first >= v.src.ports:
		v.fault(a.field("name"), shown(p.Name), "a port of this name is connected already: disconnect it first, or "+
			"choose another name")
	default:
		v.fault(a.field("name"), shown(p.Name), "%s declares a port of this name too: a port is declared in the file "+
			"or connected at run time, not both; remove one", v.src.declares(first))
	}
	if i, ok := v.switches[p.Switch]; ok && p.Name != "" {
		if _, clash := v.uplinks[i][p.Name]; clash {
			v.fault(a.field("name"), shown(p.Name), "an uplink of switch %s has this name: ports and uplinks of a "+
				"switch have different names", p.Switch)
		}
		if v.cfg.Switches[i].Tunnel != nil && p.Name == TunnelName {
			v.fault(a.field("name"), TunnelName, "switch %s has a tunnel, and this is the tunnel's name among its "+
				"ports: give the port another name", p.Switch)
		}
	}
}

// declares is the file and line that declares port i.
func (s *source) declares(i int) string {
	p, ok := s.at(at{}.field("ports").item(i, "").field("name").key)
	if !ok || s.file == "" {
		return "the configuration"
	}
	return fmt.Sprintf("%s:%d", s.file, p.line)
}

// attachment finds the switch and port group p names; -1 and nil, with a fault, where there are none.
func (v *validator) attachment(a at, p *Port) (int, *PortGroup) {
	if p.PortGroup == "" && !v.written(a, "portGroup") {
		v.fault(a.field("portGroup"), "", "the port group the port belongs to is needed")
	}
	if p.Switch == "" && !v.written(a, "switch") {
		v.fault(a.field("switch"), "", "the switch the port belongs to is needed")
		return -1, nil
	}
	i, ok := v.switches[p.Switch]
	if !ok {
		if !v.src.namesLost(at{}.field("switches"), len(v.cfg.Switches)) {
			names := make([]string, len(v.cfg.Switches))
			for k := range v.cfg.Switches {
				names[k] = v.cfg.Switches[k].Name
			}
			v.missing(a.field("switch"), shown(p.Switch), "there is no such switch"+
				known.Names{All: names}.Instead(p.Switch))
		}
		return -1, nil
	}
	s := &v.cfg.Switches[i]
	j, ok := v.groups[i][p.PortGroup]
	if !ok {
		groups := at{}.field("switches").item(i, "").field("portGroups")
		if (p.PortGroup != "" || v.written(a, "portGroup")) && !v.src.namesLost(groups, len(s.PortGroups)) {
			names := make([]string, len(s.PortGroups))
			for k := range s.PortGroups {
				names[k] = s.PortGroups[k].Name
			}
			v.missing(a.field("portGroup"), shown(p.PortGroup), "switch "+s.Name+" has no such port group"+
				known.Names{Owner: s.Name, All: names}.Instead(p.PortGroup))
		}
		return i, nil
	}
	return i, &s.PortGroups[j]
}

func (v *validator) portDevice(a at, p *Port) {
	device := p.ActualDevice()
	if p.Device == "" && !v.written(a, "device") && device != "" {
		if msg := checkDevice(device); msg != "" {
			v.fault(a.field("device"), "", "the host's interface needs a name, and the port's cannot be it: %s; set "+
				"device", msg)
			return
		}
	}
	if device == "" && !v.written(a, "device") {
		return
	}
	if msg := checkDevice(device); msg != "" {
		v.fault(a.field("device"), shown(device), "%s", msg)
	} else if other, dup := v.devices[device]; dup {
		v.fault(a.field("device"), shown(device), "%s uses this device already: a device serves one port or uplink",
			other)
	}
}

func (v *validator) portMAC(a at, p *Port, i int) {
	mac, msg := checkMAC(p.MAC)
	if msg != "" {
		v.fault(a.field("mac"), shown(p.MAC), "%s", msg)
		return
	}
	if i < 0 {
		return
	}
	if other, taken := v.macs[i][mac]; taken {
		v.fault(a.field("mac"), shown(p.MAC), "port %s of switch %s has this MAC: every port of a switch has its own",
			other, p.Switch)
	}
}

// portGuest checks the fields of p about the guest that it belongs to.
func (v *validator) portGuest(a at, p *Port) {
	host := p.ActualRole() == Host
	if p.Owner != "" || v.written(a, "owner") {
		if host {
			v.fault(a.field("owner"), shown(p.Owner), "only a vnic has an owner: a host port is the host's own; "+
				"leave it out")
		} else if msg := checkName(p.Owner); msg != "" {
			v.fault(a.field("owner"), shown(p.Owner), "%s", msg)
		}
	}
	if p.Domain != "" || v.written(a, "domain") {
		if host {
			v.fault(a.field("domain"), shown(p.Domain), "only a vnic belongs to a domain: a host port is the host's "+
				"own; leave it out")
		} else if !ValidUUID(p.Domain) {
			v.fault(a.field("domain"), shown(p.Domain), "a domain's UUID is needed, as \"virsh domuuid\" prints it: "+
				"32 hexadecimal digits in groups of 8, 4, 4, 4 and 12")
		}
	}
}

// ValidUUID says whether the text is a UUID as libvirt writes one.
func ValidUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// hostOnly checks what only a host interface has: addresses and an MTU.
func (v *validator) hostOnly(a at, p *Port, i int) {
	if p.ActualRole() != Host {
		const only = "only a host port has this: set role: host, or leave it out (a vnic's owner sets its own)"
		if len(p.Addresses) > 0 {
			v.fault(a.field("addresses"), shown(listText(p.Addresses)), only)
		}
		if p.MTU != 0 {
			v.fault(a.field("mtu"), fmt.Sprint(p.MTU), only)
		}
		return
	}
	v.mtu(a, p.MTU)
	if i >= 0 && p.MTU <= MaxMTU && p.MTU > v.cfg.Switches[i].ActualMTU() {
		v.fault(a.field("mtu"), fmt.Sprint(p.MTU), "above the MTU of switch %s, which is %d: lower this one or raise "+
			"the switch's", p.Switch, v.cfg.Switches[i].ActualMTU())
	}
	if len(p.Addresses) > maxAddressList {
		v.fault(a.field("addresses"), "", "at most %d addresses, these are %d", maxAddressList, len(p.Addresses))
	}
	seen := map[netip.Addr]bool{}
	for k, s := range p.Addresses {
		prefix, msg := checkAddress(s)
		if other, dup := v.addresses[prefix.Addr()]; dup {
			msg = "port " + other + " has this address: give it once"
		} else if seen[prefix.Addr()] && msg == "" {
			msg = "listed twice: keep one"
		}
		if msg != "" {
			v.fault(a.field("addresses").item(k, ""), shown(s), "%s", msg)
			continue
		}
		seen[prefix.Addr()] = true
	}
}

// overrides checks that the port group permits the settings that the port has of its own (S9).
func (v *validator) overrides(a at, p *Port, g *PortGroup) {
	if p.Policy == (Policy{}) {
		return
	}
	set := p.Policy.categoriesSet()
	for _, c := range Categories() {
		if set[c] && !g.Overrides.Allows(c) {
			v.fault(a.field(c), "", "port group %s does not let its ports set %s: allow it there with overrides: "+
				"{%s: true}, or leave it out here", g.Name, c, c)
		}
	}
}

// claim records what the port at index i of the configuration holds, so that no other takes it.
func (v *validator) claim(i int) {
	p := &v.cfg.Ports[i]
	claim(v.ports, p.Name, i)
	if d := p.ActualDevice(); d != "" {
		claim(v.devices, d, "port "+p.Name)
	}
	if sw, ok := v.switches[p.Switch]; ok {
		if mac, msg := checkMAC(p.MAC); msg == "" {
			claim(v.macs[sw], mac, p.Name)
		}
	}
	if p.ActualRole() != Host {
		return
	}
	for _, s := range p.Addresses {
		if prefix, msg := checkAddress(s); msg == "" {
			claim(v.addresses, prefix.Addr(), p.Name)
		}
	}
}

// claim gives the key to its first taker.
func claim[K comparable, V any](m map[K]V, key K, taker V) {
	if _, taken := m[key]; !taken {
		m[key] = taker
	}
}
