package spec

import (
	"net/netip"
	"strings"
)

// HostPort is a host port (the vmk role) that a host, or each host of a template, has on a distributed switch. A host
// that lacks the switch, or may not serve the port group, does not have it.
type HostPort struct {
	// Name is the port's name on each host. A host's own entry replaces that of a template with the same name.
	Name string `yaml:"name" json:"name"`
	// Switch names the distributed switch.
	Switch string `yaml:"switch" json:"switch"`
	// PortGroup names the port group of that switch.
	PortGroup string `yaml:"portGroup" json:"portGroup"`
	// Device is the name of the host's interface, default the port's name.
	Device string `yaml:"device,omitempty" json:"device,omitzero"`
	// MAC is that of the interface; only for one host. By default it is derived from the host's identity and the port.
	MAC string `yaml:"mac,omitempty" json:"mac,omitzero"`
	// Addresses of the interface, such as "192.0.2.1/24"; only for one host.
	Addresses []string `yaml:"addresses,omitempty" json:"addresses,omitzero"`
	// Pools each give every host an address that no other host has: "192.0.2.0/24", or a range of it,
	// "192.0.2.10-192.0.2.99/24".
	Pools []string `yaml:"pools,omitempty" json:"pools,omitzero"`
	// MTU of the interface, in bytes: 1280 up to the switch's MTU, which is the default.
	MTU int `yaml:"mtu,omitempty" json:"mtu,omitzero"`
	// Gateway is the router of a default route that the interface gets, such as "192.0.2.1"; Metric and Table are
	// the route's: 0 is the kernel's usual metric, and the main table.
	Gateway string `yaml:"gateway,omitempty" json:"gateway,omitzero"`
	Metric  int    `yaml:"metric,omitempty" json:"metric,omitzero"`
	Table   int    `yaml:"table,omitempty" json:"table,omitzero"`
}

// Port is the port as a host's configuration has it, with the addresses that it has from pools.
func (p *HostPort) Port(pooled ...string) Port {
	return Port{Name: p.Name, Switch: p.Switch, PortGroup: p.PortGroup, Role: Host, Device: p.Device, MAC: p.MAC,
		Addresses: append(append([]string(nil), p.Addresses...), pooled...), MTU: p.MTU,
		Gateway: p.Gateway, Metric: p.Metric, Table: p.Table}
}

// maxPools is how many pools one host port draws from.
const maxPools = 16

// hostPortRules checks the host ports of a definition. Addresses are unique in all of it.
type hostPortRules struct {
	*fleetValidator
	pools []usedPool
	fixed []fixedAddress
}

// usedPool is a pool, and the first place that names it.
type usedPool struct {
	Pool
	by string
}

// fixedAddress is an address of one host.
type fixedAddress struct {
	a    at
	text string
	addr netip.Addr
}

// list checks the host ports of a host or a template, which uses these devices as uplinks.
func (v *hostPortRules) list(a at, ports []HostPort, uplinks []HostSwitch, owner string, one bool) {
	v.ports, v.devices = map[string]int{}, map[string]string{}
	for i := range v.macs { // each host has its own
		v.macs[i] = map[[6]byte]string{}
	}
	for _, s := range uplinks {
		for _, u := range s.Uplinks {
			claim(v.devices, u.Device, "uplink "+u.Name+" of switch "+s.Name)
		}
	}
	routes := newRouteRules(v.validator)
	for i := range ports {
		p, under := &ports[i], a.field("hostPorts").item(i, ports[i].Name)
		port := p.Port()
		v.port(under, &port)
		routes.check(under, &port, p.Pools)
		v.oneHost(under, p, one)
		v.drawn(under, p, "host port "+p.Name+" of "+owner)
		claim(v.ports, p.Name, i)
		if d := port.ActualDevice(); d != "" {
			claim(v.devices, d, "port "+p.Name)
		}
		if sw, ok := v.switches[p.Switch]; ok {
			if mac, msg := checkMAC(p.MAC); msg == "" {
				claim(v.macs[sw], mac, p.Name)
			}
		}
		for k, s := range p.Addresses {
			prefix, msg := checkAddress(s)
			if msg != "" || !one {
				continue
			}
			claim(v.addresses, prefix.Addr(), p.Name+" of "+owner)
			v.fixed = append(v.fixed, fixedAddress{under.field("addresses").item(k, ""), s, prefix.Addr()})
		}
	}
}

// oneHost checks that a template has nothing that only one host can have.
func (v *hostPortRules) oneHost(a at, p *HostPort, one bool) {
	if one {
		return
	}
	const only = "a template is for many hosts, and this is for one: give it in that host's entry under hosts"
	if len(p.Addresses) > 0 {
		v.fault(a.field("addresses"), shown(listText(p.Addresses)), only+", or give each host one from a pool here "+
			"(pools)")
	}
	if p.MAC != "" {
		v.fault(a.field("mac"), shown(p.MAC), only)
	}
}

// drawn checks the pools that a host port draws from.
func (v *hostPortRules) drawn(a at, p *HostPort, user string) {
	if len(p.Pools) > maxPools {
		v.fault(a.field("pools"), "", "at most %d pools, these are %d", maxPools, len(p.Pools))
	}
	seen := map[Pool]bool{}
	for i, text := range p.Pools {
		under := a.field("pools").item(i, "")
		pool, err := ParsePool(text)
		switch {
		case err != nil:
			v.fault(under, shown(text), "%v", err)
			continue
		case seen[pool]:
			v.fault(under, shown(text), "listed twice: keep one")
			continue
		}
		seen[pool] = true
		known := false
		for _, o := range v.pools {
			if known = o.Pool == pool; known {
				break
			}
			if o.Overlaps(pool) {
				v.fault(under, shown(text), "overlaps pool %s of %s: write both alike, then they are one pool, or "+
					"divide the addresses", o.Pool, o.by)
				known = true
				break
			}
		}
		if !known {
			v.pools = append(v.pools, usedPool{pool, user})
		}
	}
}

// apart checks that no address of one host lies in a pool.
func (v *hostPortRules) apart() {
	for _, f := range v.fixed {
		for _, p := range v.pools {
			if p.Contains(f.addr) {
				v.fault(f.a, shown(f.text),
					"lies in pool %s of %s, which may give it to another host: take an address "+
						"outside, or make the pool a range without it (FIRST-LAST/LENGTH)", p.Pool, p.by)
			}
		}
	}
}

// Pool is a range of addresses with the prefix length that interfaces get.
type Pool struct {
	First, Last netip.Addr
	Bits        int
}

// ParsePool reads a pool: a prefix, of which all addresses count that interfaces can have, or FIRST-LAST/LENGTH. The
// error says what would be right.
func ParsePool(text string) (Pool, error) {
	first, rest, ranged := strings.Cut(text, "-")
	if !ranged {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			return Pool{}, errPool
		}
		return wholePool(p)
	}
	from, err := netip.ParseAddr(first)
	to, errTo := netip.ParsePrefix(rest)
	switch {
	case err != nil || errTo != nil || from.Zone() != "" || from.Is4In6() || from.BitLen() != to.Addr().BitLen():
		return Pool{}, errPool
	case to.Addr().Less(from):
		return Pool{}, poolFault("the range ends before it begins")
	case !to.Masked().Contains(from):
		return Pool{}, poolFault("both ends of a range are in one network of that prefix length")
	}
	whole, err := wholePool(to.Masked())
	if err != nil {
		return Pool{}, err
	}
	p := Pool{First: from, Last: to.Addr(), Bits: to.Bits()}
	if from.Less(whole.First) || whole.Last.Less(p.Last) {
		return Pool{}, poolFault("the first and the last address of a network are no interface's: begin at " +
			whole.First.String() + " and end at " + whole.Last.String() + " at most")
	}
	return p, nil
}

// poolFault is what is wrong with a pool.
type poolFault string

func (f poolFault) Error() string { return string(f) }

const errPool = poolFault(`a pool is a network or a range of one, such as "192.0.2.0/24", "192.0.2.10-192.0.2.99/24" ` +
	`or "2001:db8:1::/64"`)

// wholePool is all of a network that interfaces can have: without its first address (the network's own, or the one that
// all routers have) and, of IPv4, without its last one (broadcast), but where it has only two or one.
func wholePool(n netip.Prefix) (Pool, error) {
	p := Pool{First: n.Addr(), Last: lastOf(n), Bits: n.Bits()}
	if n.Addr().BitLen()-n.Bits() >= 2 {
		p.First = p.First.Next()
		if n.Addr().Is4() {
			p.Last = p.Last.Prev()
		}
	}
	if p.First.IsMulticast() || p.First.IsUnspecified() || p.Last.IsMulticast() {
		return Pool{}, poolFault("the addresses of a pool are unicast ones")
	}
	return p, nil
}

// lastOf is the last address of a network.
func lastOf(n netip.Prefix) netip.Addr {
	b := n.Addr().AsSlice()
	for i := n.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// String is the pool as people write it.
func (p Pool) String() string {
	n := netip.PrefixFrom(p.First, p.Bits).Masked()
	if whole, err := wholePool(n); err == nil && whole == p {
		return n.String()
	}
	return p.First.String() + "-" + netip.PrefixFrom(p.Last, p.Bits).String()
}

// Contains reports whether the address is one of the pool's.
func (p Pool) Contains(a netip.Addr) bool {
	return a.BitLen() == p.First.BitLen() && !a.Less(p.First) && !p.Last.Less(a)
}

// Overlaps reports whether the two have an address in common.
func (p Pool) Overlaps(o Pool) bool {
	return p.First.BitLen() == o.First.BitLen() && !p.Last.Less(o.First) && !o.Last.Less(p.First)
}

// Prefix is an address of the pool as an interface gets it: "192.0.2.10/24".
func (p Pool) Prefix(a netip.Addr) string { return netip.PrefixFrom(a, p.Bits).String() }

// Free is the first address of the pool that is not taken.
func (p Pool) Free(taken func(netip.Addr) bool) (netip.Addr, bool) {
	for a := p.First; p.Contains(a); a = a.Next() {
		if !taken(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}
