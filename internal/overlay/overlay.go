package overlay

import (
	"encoding/binary"
	"net/netip"
	"time"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Endpoint is a tunnel endpoint of another host. The address is its identity: one that moves to another address is
// another endpoint.
type Endpoint struct {
	// Address is the outer address, IPv4 or IPv6, without zone; an IPv4 address is never mapped into IPv6.
	Address netip.Addr `json:"address"`
	// Host is the name of the host, for people, and says which endpoints belong together: a segment sends one copy to
	// a host, not one to each of its endpoints. "" is a host of its own.
	Host string `json:"host,omitzero"`
	// Subnet is the set of endpoints among which two-tier replication repeats frames; the zero Prefix is the /24 or
	// /64 of the address.
	Subnet netip.Prefix `json:"subnet,omitzero"`
	// MTU is the longest outer packet that reaches it, as far as that is known apart from this host's own device; 0 =
	// not known.
	MTU int `json:"mtu,omitzero"`
}

// Narrow notes that no outer packet longer than mtu reaches the endpoint; 0 says nothing.
func (e *Endpoint) Narrow(mtu int) {
	if mtu > 0 && (e.MTU == 0 || mtu < e.MTU) {
		e.MTU = mtu
	}
}

// LeastMTU is the least MTU that a path of an address's family may have (RFC 791 for what every host takes, RFC 8200).
func LeastMTU(a netip.Addr) int {
	if a.Is4() {
		return 576
	}
	return 1280
}

// Tell notes the MTU that a host says it has at the endpoint. Any host of the cluster may name any address: an MTU that
// no path has counts as none, and of several that are said the largest counts, so that none cuts another one off.
func (e *Endpoint) Tell(mtu int) {
	if mtu >= LeastMTU(e.Address) {
		e.MTU = max(e.MTU, mtu)
	}
}

// SubnetOf returns the endpoint's subnet for two-tier replication.
func (e Endpoint) SubnetOf() netip.Prefix {
	if e.Subnet.IsValid() {
		return e.Subnet.Masked()
	}
	return DefaultSubnet(e.Address)
}

// DefaultSubnet returns the /24 of an IPv4 address, the /64 of an IPv6 address.
func DefaultSubnet(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits)
	return p
}

// Segment is who has members of a VNI.
type Segment struct {
	// VNI is 1–16777214.
	VNI uint32 `json:"vni"`
	// Members are the endpoints with members of the segment, each of which is among the Endpoints of the Reach. This
	// host's own are not. Of several endpoints of one host the first that is usable is taken. In two-tier replication
	// the first of each remote subnet is its proxy, so that whoever sees that one dead leaves it out or puts another
	// first.
	Members []netip.Addr `json:"members,omitzero"`
}

// Reach is what a switch of this host knows of the endpoints of other hosts. The zero Reach is a tunnel to nowhere.
type Reach struct {
	// Endpoints are those from which frames are accepted (S105), each once: all others are strangers. At most
	// MaxEndpoints for all switches of a host.
	Endpoints []Endpoint `json:"endpoints,omitzero"`
	// Segments are those that this host has, with the members elsewhere. A VNI without an entry, or without members,
	// has none. Entries for VNIs that no port group of the switch has are ignored.
	Segments []Segment `json:"segments,omitzero"`
	// Learn: the source MACs of frames from the tunnel are learned, as many per endpoint as LearnLimit. It is on in a
	// file with peers, and on a host that has lost its controllers.
	Learn bool `json:"learn,omitzero"`
}

// Limits of one host, for all its switches together.
const (
	// MaxEndpoints is how many endpoints of other hosts the kernel's table holds.
	MaxEndpoints = 16383
	// MaxLocations is how many announced and static locations the kernel's table holds.
	MaxLocations = 262144
	// LearnLimit is how many MACs are learned behind one endpoint.
	LearnLimit = 4096
)

// Source says how a location became known, from the weakest to the strongest.
type Source uint8

// The sources of a location. A stronger one wins over a weaker one for the same MAC, except that what is learned wins
// over what was announced while Reach.Learn is on: then nobody is there who could announce that the MAC has moved.
const (
	// Learned from frames that came from the endpoint; it ages after 10 minutes of silence. Only the kernel makes
	// these.
	Learned Source = iota + 1
	// Announced by a controller, or by the endpoint's own host. It stays until it is withdrawn.
	Announced
	// Static in this host's file.
	Static
)

// String returns learned, announced or static.
func (s Source) String() string {
	return [...]string{"", "learned", "announced", "static"}[s&3]
}

// Key is what a location is for.
type Key struct {
	VNI    uint32   `json:"vni"`
	Inside Inside   `json:"inside,omitzero"`
	MAC    plan.MAC `json:"mac"`
}

// Whole is the key of the same MAC in all VLANs inside the VNI.
func (k Key) Whole() Key { return Key{VNI: k.VNI, MAC: k.MAC} }

// Inside says in which VLANs inside a VNI something is: the zero value stands for all of them.
type Inside uint16

// In is one VLAN inside a VNI, 0 to 4094; 0 is the untagged one.
func In(vlan uint16) Inside { return Inside(vlan + 1) }

// VLAN is the one VLAN; false for all of them.
func (i Inside) VLAN() (vlan uint16, one bool) { return uint16(i - min(i, 1)), i != 0 }

// Location says behind which endpoint a MAC of a VNI is. One for a single VLAN inside it counts more than one for all.
type Location struct {
	Key
	// Endpoint is the outer address; while it is not among the Endpoints of the Reach, the location does not count.
	Endpoint netip.Addr `json:"endpoint"`
	Source   Source     `json:"source"`
}

// Address is an IP address in a segment, in one VLAN inside it.
type Address struct {
	VNI  uint32
	VLAN uint16 // 0 = untagged
	IP   netip.Addr
}

// Binding says which MAC has an IP address in a segment, so that this host can answer ARP and neighbour solicitations
// itself (S85).
type Binding struct {
	Address
	MAC plan.MAC
	// Age is how long ago the owner was heard last.
	Age time.Duration
}

// Bound is a binding of this host's tunnel.
type Bound struct {
	Binding
	Switch string
	// Told by the controllers; else heard from the owner.
	Told bool
	// Here: the owner is behind a port of this host.
	Here bool
	// Advertised: the owner of an IPv6 address has said itself that it is a router (Router), or that it is none. Before
	// that nobody answers for it.
	Advertised, Router bool
	// Rival had the address before; zero for none.
	Rival plan.MAC
	// Contested: both claim it, so that nobody answers for either.
	Contested bool
	// Unverified: the owner has taken it over and has not answered a question since, so that it is asked itself.
	Unverified bool
}

// Of returns what the file of a host says of the endpoints of others: each peer has members of every segment of the
// switch. It is the zero Reach for a switch without a tunnel.
func Of(sw *plan.Switch) Reach {
	var r Reach
	if sw.Tunnel == nil {
		return r
	}
	r.Learn = sw.Tunnel.Learning
	var members []netip.Addr
	for _, p := range sw.Tunnel.Peers {
		r.Endpoints = append(r.Endpoints, Endpoint{Address: p.Address, Host: p.Name, Subnet: p.Subnet})
		members = append(members, p.Address)
	}
	for _, vni := range sw.VNIs() {
		r.Segments = append(r.Segments, Segment{VNI: vni, Members: members})
	}
	return r
}

// SubnetOf returns the subnet, for two-tier replication, of an address that this host or another one has: that of the
// endpoint which has the address, or in whose subnet it is, else the /24 or /64 of the address.
func (r Reach) SubnetOf(a netip.Addr) netip.Prefix {
	in := DefaultSubnet(a)
	for _, e := range r.Endpoints {
		if e.Address == a {
			return e.SubnetOf()
		}
		if s := e.SubnetOf(); s.Contains(a) {
			in = s
		}
	}
	return in
}

// StaticOf returns the locations in the file of a host.
func StaticOf(sw *plan.Switch) []Location {
	if sw.Tunnel == nil {
		return nil
	}
	var list []Location
	for _, p := range sw.Tunnel.Peers {
		for _, m := range p.MACs {
			list = append(list, Location{Key: Key{VNI: m.VNI, MAC: m.MAC}, Endpoint: p.Address, Source: Static})
		}
	}
	return list
}

// Headroom is how many bytes an inner packet must be smaller than the MTU of the underlay, so that it fits untagged:
// inner Ethernet header, VXLAN, UDP and the outer IP header. A VLAN tag inside the VNI takes TagInside more.
func Headroom(outer netip.Addr) int {
	if outer.Is4() {
		return 14 + 8 + 8 + 20
	}
	return 14 + 8 + 8 + 40
}

// TagInside is how many bytes a VLAN tag inside the VNI takes.
const TagInside = 4

// TwoTier reports whether the tunnel replicates in two tiers.
func TwoTier(t *plan.Tunnel) bool { return t.Replication == spec.ReplicateTwoTier }

// Leaving is the endpoint of a host, of one or more of a family, by which all frames of a sender leave: it is chosen by
// the last four bytes of its MAC.
func Leaving(own []netip.Addr, sender plan.MAC) netip.Addr {
	n := binary.NativeEndian.Uint32(sender[2:])
	n ^= n>>24 ^ n>>16
	return own[n%uint32(len(own))]
}
