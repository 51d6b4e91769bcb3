package spec

import (
	"cmp"
	"net"
	"net/netip"
	"strconv"
)

// tunnelRules check a switch's tunnel and the overlay segments of its port groups.
type tunnelRules struct{ *validator }

// tunnel checks the tunnel of switch i, which is at a.
func (v tunnelRules) tunnel(a at, i int) {
	s := &v.cfg.Switches[i]
	if s.Tunnel == nil {
		return
	}
	a = a.field("tunnel")
	t := s.Tunnel
	if (t.Port != 0 || v.written(a, "port")) && (t.Port < 1 || t.Port > 65535) {
		v.fault(a.field("port"), strconv.Itoa(t.Port), "a UDP port is 1–65535, default %d", DefaultTunnelPort)
	}
	for k := range i {
		other := &v.cfg.Switches[k]
		if !v.fleet && other.Tunnel != nil && other.Tunnel.ActualPort() == t.ActualPort() {
			v.fault(a.field("port"), strconv.Itoa(t.ActualPort()), "the tunnel of switch %s uses this UDP port "+
				"already: give one of them another port, on all hosts", other.Name)
		}
	}
	enum(v.validator, a, "replication", t.Replication, ReplicateHead, ReplicateTwoTier)
	v.duration(a.field("neighbours"), "hold", t.Neighbours.Hold, MinHold, MaxHold, `"5m"`)
	if j, taken := v.uplinks[i][TunnelName]; taken {
		v.fault(at{}.field("switches").item(i, s.Name).field("uplinks").item(j, TunnelName).field("name"), TunnelName,
			"the switch has a tunnel, and this is the tunnel's name among its ports: give the uplink another name")
	}
	v.monitoring(a.field("monitoring"), t.Monitoring)
	own := v.endpoints(a.field("endpoints"), t)
	v.peers(a.field("peers"), t, own)
	v.ofMany(a, t)
}

// ofMany checks that the tunnel in a definition has nothing that is right on one host alone.
func (v tunnelRules) ofMany(a at, t *Tunnel) {
	if !v.fleet {
		return
	}
	for i := range t.Endpoints {
		if e := &t.Endpoints[i]; e.Address != "" {
			v.fault(a.field("endpoints").item(i, e.Label()).field("address"), shown(e.Address), "an address is that "+
				"of one host, and a definition is for many: give the device or the hostPort that has it")
		}
	}
	if len(t.Peers) > 0 {
		v.fault(a.field("peers"), "", "peers are for a host without controllers: leave them out, as the controllers "+
			"tell each host of the others")
	}
}

// apart checks that in a definition the controllers can tell overlay segments apart by their VNIs, whichever switches
// they are of.
func (v tunnelRules) apart() {
	first := map[int]int{} // VNI: switch
	for i := range v.cfg.Switches {
		s := &v.cfg.Switches[i]
		for k := range s.PortGroups {
			g := &s.PortGroups[k]
			if g.Overlay == nil || s.Tunnel == nil {
				continue
			}
			other, known := first[g.Overlay.VNI]
			if !known {
				first[g.Overlay.VNI] = i
			} else if other != i {
				v.fault(at{}.field("switches").item(i, s.Name).field("portGroups").item(k, g.Name).field("overlay").
					field("vni"), strconv.Itoa(g.Overlay.VNI), "switch %s has this VNI already: in a definition each "+
					"VNI is on one switch", v.cfg.Switches[other].Name)
			}
		}
	}
}

// endpoints checks this host's endpoints, and returns those of its own addresses that are known.
func (v tunnelRules) endpoints(a at, t *Tunnel) map[netip.Addr]string {
	own, names := map[netip.Addr]string{}, map[string]bool{}
	if len(t.Endpoints) > MaxTunnelEndpoints {
		v.fault(a.item(MaxTunnelEndpoints, ""), "", "a switch has at most %d endpoints on a host, and here are %d",
			MaxTunnelEndpoints, len(t.Endpoints))
	}
	for i := range t.Endpoints {
		e := &t.Endpoints[i]
		e1 := a.item(i, e.Label())
		switch {
		case e.HostPort != "" && e.Device != "":
			v.fault(e1.field("device"), shown(e.Device), "a host port is an interface already: give hostPort or "+
				"device")
		case e.HostPort == "" && e.Device == "" && e.Address == "":
			v.fault(e1, "", "give one of address, hostPort and device: where the endpoint's address comes from")
		}
		if names[e.Label()] && e.Label() != "" {
			v.fault(e1, shown(e.Label()), "another endpoint of this switch has this name: give one of them a name")
		}
		names[e.Label()] = true
		if e.Name != "" {
			if msg := checkName(e.Name); msg != "" {
				v.fault(e1.field("name"), shown(e.Name), "%s", msg)
			}
		}
		if e.Device != "" {
			if msg := checkDevice(e.Device); msg != "" {
				v.fault(e1.field("device"), shown(e.Device), "%s", msg)
			}
		}
		if e.Address == "" {
			continue
		}
		addr, ok := v.outer(e1.field("address"), e.Address)
		if other, dup := own[addr]; ok && dup {
			v.fault(e1.field("address"), shown(e.Address), "endpoint %s has this address already", other)
		}
		if ok {
			own[addr] = e.Label()
		}
	}
	return own
}

// outerAddress reads an outer address; false for one that other hosts can't reach.
func outerAddress(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	return addr, err == nil && !addr.Is4In6() && addr.Zone() == "" && !addr.IsUnspecified() && !addr.IsMulticast() &&
		!addr.IsLoopback() && !addr.IsLinkLocalUnicast() && addr != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// Valid reports whether a file may list the peer, apart from what else it lists.
func (p *TunnelPeer) Valid() bool {
	_, ok := outerAddress(p.Address)
	return ok && (p.Name == "" || checkName(p.Name) == "")
}

// outer checks an outer address.
func (v tunnelRules) outer(a at, text string) (netip.Addr, bool) {
	addr, ok := outerAddress(text)
	if !ok {
		v.fault(a, shown(text), "an endpoint's address is one that other hosts can reach, such as 192.0.2.1 or "+
			"2001:db8::1, without prefix length")
		return addr, false
	}
	return addr, true
}

func (v tunnelRules) peers(a at, t *Tunnel, own map[netip.Addr]string) {
	if len(t.Peers) > MaxTunnelPeers {
		v.fault(a.item(MaxTunnelPeers, ""), "", "a file lists at most %d peers, and here are %d: controllers know more",
			MaxTunnelPeers, len(t.Peers))
		return
	}
	seen := map[netip.Addr]string{}
	located := map[TunnelMAC]string{}
	subnets := map[netip.Prefix]string{}
	for i := range t.Peers {
		p := &t.Peers[i]
		p1 := a.item(i, p.Label())
		if p.Name != "" {
			if msg := checkName(p.Name); msg != "" {
				v.fault(p1.field("name"), shown(p.Name), "%s", msg)
			}
		}
		if addr, ok := v.outer(p1.field("address"), p.Address); ok {
			if e, mine := own[addr]; mine {
				v.fault(p1.field("address"), shown(p.Address), "this is the address of this host's own endpoint %s: "+
					"list the other hosts' alone", e)
			}
			if other, dup := seen[addr]; dup {
				v.fault(p1.field("address"), shown(p.Address), "peer %s has this address already", other)
			}
			seen[addr] = p.Label()
			v.subnet(p1, p, addr)
			if t.Replication == ReplicateTwoTier {
				v.apartFrom(p1, p, addr, subnets)
			}
		}
		v.macsBehind(p1.field("macs"), p, located)
	}
}

func (v tunnelRules) subnet(a at, p *TunnelPeer, addr netip.Addr) {
	if p.Subnet == "" {
		return
	}
	if n, err := netip.ParsePrefix(p.Subnet); err != nil || n != n.Masked() || !n.Contains(addr) {
		v.fault(a.field("subnet"), shown(p.Subnet), "a network that contains the peer's address, such as %s",
			must(addr.Prefix(subnetBits(addr))))
	}
}

// apartFrom checks that the subnets of two-tier replication, which are those of the peers, are the same or apart: of
// two that overlap, hosts would repeat each other's copies.
func (v tunnelRules) apartFrom(a at, p *TunnelPeer, addr netip.Addr, subnets map[netip.Prefix]string) {
	own, err := netip.ParsePrefix(p.Subnet)
	if p.Subnet == "" {
		own, err = addr.Prefix(subnetBits(addr))
	}
	if err != nil {
		return // that was said
	}
	for other, peer := range subnets {
		if other != own && other.Overlaps(own) {
			v.fault(a.field("subnet"), own.String(), "it overlaps %s, the subnet of peer %s: in two-tier replication "+
				"subnets are the same or apart; give both peers the same subnet", other, peer)
			return
		}
	}
	subnets[own] = p.Label()
}

// subnetBits is the length of the subnet of an endpoint that names none.
func subnetBits(addr netip.Addr) int {
	if addr.Is4() {
		return 24
	}
	return 64
}

func must(p netip.Prefix, _ error) netip.Prefix { return p }

func (v tunnelRules) macsBehind(a at, p *TunnelPeer, located map[TunnelMAC]string) {
	if len(p.MACs) > MaxTunnelMACs {
		v.fault(a.item(MaxTunnelMACs, ""), "", "a file lists at most %d MACs for a peer, and here are %d",
			MaxTunnelMACs, len(p.MACs))
		return
	}
	for i := range p.MACs {
		m := p.MACs[i]
		m1 := a.item(i, "")
		v.vni(m1.field("vni"), m.VNI)
		hw, err := net.ParseMAC(m.MAC)
		if err != nil || len(hw) != 6 || hw[0]&1 == 1 || hw.String() == "00:00:00:00:00:00" {
			v.fault(m1.field("mac"), shown(m.MAC), "the address of one station, such as 02:00:00:00:01:01")
			continue
		}
		m.MAC = hw.String()
		if other, dup := located[m]; dup {
			v.fault(m1.field("mac"), shown(m.MAC), "peer %s has it already in VNI %d: a MAC is at one place",
				other, m.VNI)
		}
		located[m] = p.Label()
	}
}

func (v tunnelRules) vni(a at, vni int) {
	if vni < MinVNI || vni > MaxVNI {
		v.fault(a, strconv.Itoa(vni), "a VNI is %d–%d", MinVNI, MaxVNI)
	}
}

// overlay checks the overlay segment of a port group of switch i, which is at a.
func (v tunnelRules) overlay(a at, i int, g *PortGroup) {
	if g.Overlay == nil {
		return
	}
	group := a
	a = a.field("overlay")
	v.vni(a.field("vni"), g.Overlay.VNI)
	if v.cfg.Switches[i].Tunnel == nil && !v.fleet {
		v.fault(a, "", "switch %s has no tunnel: give it one, with this host's endpoint and its peers",
			v.cfg.Switches[i].Name)
	}
	if inside := cmp.Or(g.VLAN, v.cfg.Switches[i].Defaults.VLAN); inside != nil && len(inside.Trunk) > 0 {
		v.trunkInside(group.field("vlan"), inside)
	}
}

// trunkInside checks a trunk in an overlay port group. To the program each VLAN inside a VNI is a segment with a
// number, of which a switch has MaxInside.
func (v tunnelRules) trunkInside(a at, inside *VLAN) {
	if inside.Outer == "802.1ad" {
		v.fault(a.field("outer"), shown(inside.Outer), "a trunk inside an overlay segment is one of 802.1Q: leave out "+
			"outer; a second tag in the guests' frames is carried as it is")
	}
	if n := len(vlansInside(inside)); n > MaxInside {
		v.fault(a.field("trunk"), "", "a switch has at most %d VLANs inside its overlay segments on a host, and here "+
			"are %d: name the VLANs that the guests use", MaxInside, n)
	}
}

// vlansInside are the VLANs of a port group inside its VNI, 0 for untagged frames.
func vlansInside(w *VLAN) map[uint16]bool {
	all := map[uint16]bool{}
	switch {
	case w == nil || w.None:
		all[0] = true
	case len(w.Trunk) == 0:
		all[uint16(w.Access)] = true
	}
	for _, text := range trunkOf(w) {
		if r, err := ParseVLANRange(text); err == nil {
			for id := int(r.Lo); id <= int(r.Hi); id++ {
				all[uint16(id)] = true
			}
		}
	}
	return all
}

func trunkOf(w *VLAN) []string {
	if w == nil {
		return nil
	}
	return w.Trunk
}

// inside checks that a switch has no more VLANs inside its VNIs than it has numbers, at the first port group too many.
func (v tunnelRules) inside(i int) {
	s := &v.cfg.Switches[i]
	type segment struct {
		vni  int
		vlan uint16
	}
	all := map[segment]bool{}
	for k := range s.PortGroups {
		g := &s.PortGroups[k]
		if g.Overlay == nil {
			continue
		}
		own := vlansInside(cmp.Or(g.VLAN, s.Defaults.VLAN))
		if len(own) > MaxInside {
			return // that was said
		}
		for id := range own {
			all[segment{g.Overlay.VNI, id}] = true
		}
		if len(all) > MaxInside {
			v.fault(at{}.field("switches").item(i, s.Name).field("portGroups").item(k, g.Name), "",
				"a switch has at most %d VLANs inside its overlay segments on a host, and up to here are %d: name in "+
					"trunks the VLANs that guests use", MaxInside, len(all))
			return
		}
	}
}

// overlays checks that the host has no more overlay segments than its tables hold, at the first switch too many.
func (v tunnelRules) overlays() {
	n := 0
	for i := range v.cfg.Switches {
		if !v.fleet {
			v.inside(i)
		}
		vnis := map[int]bool{}
		for k := range v.cfg.Switches[i].PortGroups {
			if o := v.cfg.Switches[i].PortGroups[k].Overlay; o != nil {
				vnis[o.VNI] = true
			}
		}
		if n += len(vnis); n > MaxOverlays && !v.fleet {
			v.fault(at{}.field("switches").item(i, v.cfg.Switches[i].Name), "",
				"a host has at most %d overlay segments, and up to here are %d", MaxOverlays, n)
			return
		}
	}
}

// carriers checks that the host ports that endpoints name exist, and are not carried by the tunnel themselves.
func (v tunnelRules) carriers() {
	if v.fleet {
		return
	}
	for i := range v.cfg.Switches {
		s := &v.cfg.Switches[i]
		if s.Tunnel == nil {
			continue
		}
		a := at{}.field("switches").item(i, s.Name).field("tunnel").field("endpoints")
		for k := range s.Tunnel.Endpoints {
			if e := &s.Tunnel.Endpoints[k]; e.HostPort != "" {
				v.carrier(a.item(k, e.Label()).field("hostPort"), e.HostPort)
			}
		}
	}
}

func (v tunnelRules) carrier(a at, name string) {
	n, ok := v.ports[name]
	if !ok || v.cfg.Ports[n].ActualRole() != Host {
		v.missing(a, shown(name), "there is no host port of this name: list it under ports, with role: host")
		return
	}
	p := &v.cfg.Ports[n]
	if k, ok := v.switches[p.Switch]; ok {
		if g, ok := v.groups[k][p.PortGroup]; ok && v.cfg.Switches[k].PortGroups[g].Overlay != nil {
			v.fault(a, shown(name), "port group %s of this host port is an overlay segment itself: an endpoint needs "+
				"a VLAN", p.PortGroup)
		}
	}
}
