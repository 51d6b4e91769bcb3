package flow

import (
	"net/netip"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Ends are the endpoints of a tunnel between which the frames of a flow cross. They are those by which the host knows
// its MACs when it is asked; a flow whose guest moves has others before and after.
type Ends struct {
	// Local is this host's; invalid for frames that arrive on a host with several of that family: the other host
	// chooses.
	Local netip.Addr
	// Remote is that of the host with the other end of the flow.
	Remote netip.Addr
	// Port is the UDP port at which all of them receive.
	Port uint16
}

// Crossing is the way of a flow's frames through a tunnel.
type Crossing struct {
	Tunnel  uint16 // slot of the tunnel's point
	Segment uint16 // its number, as a Key has it
	VNI     uint32
	Leaves  bool // from this host to another one
	Source  plan.MAC
	Other   plan.MAC // of the station on the other host
}

// Locator says between which endpoints frames cross; false where the host does not know it. Any goroutine may call it.
type Locator interface {
	Locate(Crossing) (Ends, bool)
}

// NoLocator is the Locator of a host without tunnels.
type NoLocator struct{}

// Locate knows nothing.
func (NoLocator) Locate(Crossing) (Ends, bool) { return Ends{}, false }

// IsTunnel reports whether the point is a switch's tunnel, which carries its overlay segments between hosts.
func (p Point) IsTunnel() bool { return p.Uplink && p.ID.Name == spec.TunnelName }

// Crossing returns the way of a flow through a tunnel, by the slots where its last frame came in and went out; false
// for a flow that stays on this host, that is in a VLAN, or whose frames went to several receivers or to a group.
func (p Points) Crossing(k *Key, in, out uint16) (Crossing, bool) {
	if k.Direction == Ingress {
		in = k.Point
	} else {
		out = k.Point
	}
	s, ok := p[k.Point].Overlay.Segment(k.VLAN)
	if !ok {
		return Crossing{}, false
	}
	switch {
	case p[out].IsTunnel() && !k.DstMAC.IsGroup():
		return Crossing{Tunnel: out, Segment: k.VLAN, VNI: s.VNI, Leaves: true, Source: k.SrcMAC,
			Other: k.DstMAC}, true
	case p[in].IsTunnel():
		return Crossing{Tunnel: in, Segment: k.VLAN, VNI: s.VNI, Source: k.SrcMAC, Other: k.SrcMAC}, true
	}
	return Crossing{}, false
}
