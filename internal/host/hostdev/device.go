package hostdev

import "heddle/internal/plan"

// Kind says for what a device can be used.
type Kind string

// The kinds of device.
const (
	Veth  Kind = "veth"
	Tap   Kind = "tap"
	Other Kind = "other"
)

// Device is one device of the host's namespace.
type Device struct {
	Index uint32
	Name  string
	Alias string
	Kind  Kind
	// Driver is the kernel's name for the kind of a virtual device ("veth", "tun", "bridge"); "" for a physical
	// one.
	Driver string
	End
	// Peer is the other end of a veth.
	Peer Peer
	// HostTraffic: the host has addresses of more than link scope on the device, or on a VLAN device stacked on it.
	HostTraffic bool
	// ActiveMember is the member by which a bond with one active member sends; "" for other devices and modes, and
	// while there is none.
	ActiveMember string
	// Permanent is the built-in address of a physical device; zero for others.
	Permanent plan.MAC
	// XDP is the kernel's id of the XDP program on the device, which sees frames before everything else; 0 for none.
	XDP uint32
	// Master is the device that this one is a member of, such as a bond or a bridge; zero without one.
	Master Master
	// TunnelPort is the UDP port of a VXLAN device that takes its outer addresses from each frame; 0 for others.
	TunnelPort uint16
	// Shared: the device gets the frames for its own MAC alone of those that its lower device gets, as a macvlan does
	// unless it passes everything through.
	Shared bool
	// NotEthernet: its frames have no Ethernet header.
	NotEthernet bool
	// Born distinguishes devices that had the same name and index one after the other, among those that this Host
	// has seen: a device that was removed, or was in another namespace meanwhile, comes back with another number.
	Born uint64
}

// Master is the device that receives what its members receive.
type Master struct {
	Name string
	// Driver is the kernel's name for its kind: "bond", "bridge", "vrf", …; "" when the kind cannot be seen.
	Driver string
}

// End is the state of one end of a veth, or of any other device.
type End struct {
	MAC plan.MAC
	// MTU is the largest layer-3 size, in bytes.
	MTU int
	// AdminUp: IFF_UP. Carrier: the kernel may send on it (IFF_LOWER_UP).
	AdminUp, Carrier bool
	// CarrierDowns is how often the carrier was lost so far, including losses too short for a notification.
	CarrierDowns uint32
	// Promiscuous: the device is in promiscuous mode, because of its flag or of a packet socket.
	Promiscuous bool
	// FlagPromiscuous: promiscuous mode was set by flag, as "ip link set promisc on" does.
	FlagPromiscuous bool
}

// Up reports whether the end is up and has carrier.
func (e End) Up() bool { return e.AdminUp && e.Carrier }

// Peer says where the other end of a veth is, and its state if that could be seen.
type Peer struct {
	// Index is the other end's ifindex in its namespace; 0 when there is none.
	Index uint32
	// Elsewhere: the other end is in another namespace, which this one knows by NSID (0 or more).
	Elsewhere bool
	NSID      int32
	// Seen: the state in End was read; false if the other namespace does not show it.
	Seen bool
	End
}

// linkKey identifies a device across namespaces: nsid is localNS for the host's own.
type linkKey struct {
	nsid  int32
	index uint32
}

const localNS int32 = -1

// link is the content of one RTM_NEWLINK message.
type link struct {
	index uint32
	name  string
	alias string
	kind  string
	tap   bool
	peer  uint32 // IFLA_LINK
	// active is IFLA_BOND_ACTIVE_SLAVE, 0 for none.
	active uint32
	// master is IFLA_MASTER: the device of which this one is a member, 0 for none.
	master uint32
	// tunnelPort is IFLA_VXLAN_PORT of a VXLAN device with IFLA_VXLAN_COLLECT_METADATA.
	tunnelPort uint16
	// permanent is IFLA_PERM_ADDRESS.
	permanent plan.MAC
	// xdp is IFLA_XDP_PROG_ID, or one of the ids if there are programs of several modes.
	xdp uint32
	// shared and notEthernet are those of Device.
	shared, notEthernet bool
	// peerNS is IFLA_LINK_NETNSID, localNS when the message has none.
	peerNS int32
	end    End
}

func (l link) device() Device {
	d := Device{Index: l.index, Name: l.name, Alias: l.alias, Kind: Other, Driver: l.kind, Permanent: l.permanent,
		XDP: l.xdp, TunnelPort: l.tunnelPort, Shared: l.shared, NotEthernet: l.notEthernet, End: l.end}
	switch {
	case l.kind == "veth":
		d.Kind = Veth
		d.Peer = Peer{Index: l.peer, Elsewhere: l.peerNS != localNS, NSID: l.peerNS}
	case l.tap:
		d.Kind = Tap
	}
	return d
}
