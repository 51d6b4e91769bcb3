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

// Place implements Places.
func (p Points) Place(slot uint16) (*Overlay, bool) { return p[slot].Overlay, p[slot].IsTunnel() }

// Places are the points of a switch, by slot.
type Places interface {
	// Place says which overlay segments have which numbers at a point, nil for none, and whether it is a tunnel.
	Place(slot uint16) (segments *Overlay, tunnel bool)
}

// CrossingOf returns the way of a flow through a tunnel, by the slots where its last frame came in and went out; false
// for a flow that stays on this host, that is in a VLAN, or whose frames went to several receivers or to a group.
func CrossingOf(p Places, k *Key, in, out uint16) (Crossing, bool) {
	if k.Direction == Ingress {
		in = k.Point
	} else {
		out = k.Point
	}
	segments, _ := p.Place(k.Point)
	s, ok := segments.Segment(k.VLAN)
	if !ok {
		return Crossing{}, false
	}
	c := Crossing{Segment: k.VLAN, VNI: s.VNI, Source: k.SrcMAC}
	if _, leaves := p.Place(out); leaves && !k.DstMAC.IsGroup() {
		c.Tunnel, c.Leaves, c.Other = out, true, k.DstMAC
		return c, true
	}
	if _, arrives := p.Place(in); arrives {
		c.Tunnel, c.Other = in, k.SrcMAC
		return c, true
	}
	return Crossing{}, false
}
