package spec

import "time"

// Tunnel is how a switch carries its overlay segments between hosts: VXLAN (RFC 7348) over any routed network, IPv4 or
// IPv6. Port groups with overlay need it.
type Tunnel struct {
	// Endpoints are this host's ends of the tunnel, at least one to carry frames, and at most 8: the outer addresses.
	// With several, each port uses one of those that work, chosen by its number (as originating-port chooses an
	// uplink).
	Endpoints []TunnelEndpoint `yaml:"endpoints,omitempty" json:"endpoints,omitzero"`
	// Port is the UDP port at which every host of the overlay receives: 1–65535, default 4789 (RFC 7348). Another one
	// lets a tunnel of the user's own stay at 4789. No two switches of a host have the same.
	Port int `yaml:"port,omitempty" json:"port,omitzero"`
	// Replication is head (default) or two-tier: who makes the copies of a frame with several receivers (S84).
	Replication Replication `yaml:"replication,omitempty" json:"replication,omitzero"`
	// Learning: this host learns from the frames that arrive which MAC is behind which endpoint. Default true. A host
	// with controllers has it off while it hears from them: they say where every MAC is.
	Learning *bool `yaml:"learning,omitempty" json:"learning,omitzero"`
	// Neighbours is how this host answers ARP and neighbour solicitations for stations of other hosts (S85).
	Neighbours Neighbours `yaml:"neighbours,omitempty" json:"neighbours,omitzero"`
	// Peers are the endpoints of other hosts, for hosts without controllers: frames are taken from these alone, and
	// every segment of this host is considered to have members behind each of them. At most 1024.
	Peers []TunnelPeer `yaml:"peers,omitempty" json:"peers,omitzero"`
	// Monitoring is what is metered of the frames that go into the tunnel and come out of it, without their outer
	// headers. As an uplink, it inherits nothing.
	Monitoring Monitoring `yaml:"monitoring,omitempty" json:"monitoring,omitzero"`
}

// Neighbours is how a host answers for stations of other hosts in its overlay segments.
type Neighbours struct {
	// Answer: a guest that asks who has an address gets the answer from its own host, if that knows, and nobody else is
	// asked. Default true.
	Answer *bool `yaml:"answer,omitempty" json:"answer,omitzero"`
	// Hold is for how long the owner of an address is known after it was heard last: then it is asked for again.
	// 1s–2h, default "5m".
	Hold string `yaml:"hold,omitempty" json:"hold,omitzero"`
}

// TunnelEndpoint is an outer address of this host. Exactly one of Address, HostPort and Device is given; Address may
// also stand beside HostPort or Device to choose one of several addresses.
type TunnelEndpoint struct {
	// Name is the endpoint's, unique on the switch; default the address, host port or device.
	Name string `yaml:"name,omitempty" json:"name,omitzero"`
	// Address is an IPv4 or IPv6 address that this host has or gets, whatever device it is on.
	Address string `yaml:"address,omitempty" json:"address,omitzero"`
	// HostPort names a host port (the vmk role) of any switch: its first address is used. Its port group has the VLAN
	// and the team of uplinks that carry the outer frames. It can't be in an overlay port group itself.
	HostPort string `yaml:"hostPort,omitempty" json:"hostPort,omitzero"`
	// Device names an interface of this host: its first global address is used.
	Device string `yaml:"device,omitempty" json:"device,omitzero"`
}

// Replication says who makes the copies of a frame with several receivers.
type Replication string

// The kinds of replication (S84).
const (
	// ReplicateHead: the sender's host sends one copy to each endpoint that has members of the segment.
	ReplicateHead Replication = "head"
	// ReplicateTwoTier: it sends one copy to each such endpoint of its own subnet, and one to a proxy in each other
	// subnet, which repeats it there.
	ReplicateTwoTier Replication = "two-tier"
)

// TunnelPeer is an endpoint of another host.
type TunnelPeer struct {
	// Name is the other host's as people read it; default the address. Endpoints with one name belong to one host.
	Name string `yaml:"name,omitempty" json:"name,omitzero"`
	// Address is its outer IPv4 or IPv6 address.
	Address string `yaml:"address" json:"address"`
	// Subnet is the network whose endpoints repeat frames for one another in two-tier replication, such as
	// "192.0.2.0/24"; default the /24 or /64 of the address.
	Subnet string `yaml:"subnet,omitempty" json:"subnet,omitzero"`
	// MACs are known to be behind the endpoint: frames to them go there alone, also where nothing is learned. At most
	// 4096.
	MACs []TunnelMAC `yaml:"macs,omitempty" json:"macs,omitzero"`
}

// TunnelMAC is a MAC behind an endpoint.
type TunnelMAC struct {
	// VNI is the segment's.
	VNI int `yaml:"vni" json:"vni"`
	// MAC is the address, in every VLAN inside the segment.
	MAC string `yaml:"mac" json:"mac"`
}

// Overlay puts the ports of a port group into an overlay segment instead of a VLAN of the physical network.
type Overlay struct {
	// VNI is the segment's number (VXLAN Network Identifier): 1–16777214.
	VNI int `yaml:"vni" json:"vni"`
}

// Limits of overlay segments.
const (
	MinVNI = 1
	MaxVNI = 1<<24 - 2
	// DefaultTunnelPort is IANA's UDP port of VXLAN.
	DefaultTunnelPort = 4789
	// MaxTunnelEndpoints is how many endpoints of its own a switch has on a host.
	MaxTunnelEndpoints = 8
	// MaxTunnelPeers is how many peers a file lists.
	MaxTunnelPeers = 1024
	// MaxTunnelMACs is how many MACs a file lists for one peer.
	MaxTunnelMACs = 4096
	// MaxOverlays is how many overlay segments the switches of a host can have together.
	MaxOverlays = 1024
	// MaxInside is how many segments a switch has on a host, each VLAN inside a VNI being one: the kernel's program
	// knows them by numbers that are VLANs to it.
	MaxInside = 4094
	// TunnelName is the name of a switch's tunnel among its ports and uplinks, in counters, traces and captures. No
	// port or uplink of a switch with a tunnel has this name.
	TunnelName = "tunnel"
)

// Limits of Neighbours.Hold.
const (
	MinHold     = time.Second
	MaxHold     = 2 * time.Hour
	DefaultHold = 5 * time.Minute
)

// ActualHold is for how long an owner is known, in whole seconds; 0 where the host does not answer.
func (n *Neighbours) ActualHold() time.Duration {
	if n.Answer != nil && !*n.Answer {
		return 0
	}
	if d, err := time.ParseDuration(n.Hold); err == nil {
		return d.Truncate(time.Second)
	}
	return DefaultHold
}

// ActualPort is the tunnel's UDP port.
func (t *Tunnel) ActualPort() int {
	if t.Port == 0 {
		return DefaultTunnelPort
	}
	return t.Port
}

// ActualReplication is the tunnel's replication.
func (t *Tunnel) ActualReplication() Replication {
	if t.Replication == "" {
		return ReplicateHead
	}
	return t.Replication
}

// Label is the name by which people see the endpoint.
func (e *TunnelEndpoint) Label() string {
	for _, s := range []string{e.Name, e.HostPort, e.Device} {
		if s != "" {
			return s
		}
	}
	return e.Address
}

// Label is the name by which people see the peer.
func (p *TunnelPeer) Label() string {
	if p.Name == "" {
		return p.Address
	}
	return p.Name
}

// VNI is the number of the port group's overlay segment, 0 for a port group without one.
func (g *PortGroup) VNI() uint32 {
	if g.Overlay == nil {
		return 0
	}
	return uint32(g.Overlay.VNI)
}
