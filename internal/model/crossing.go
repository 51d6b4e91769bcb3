package model

import (
	"encoding/binary"
	"net/netip"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// ethernetHeader is the length of two addresses and a type, in bytes.
const ethernetHeader = 14

// Crossing is the second run of frames that leave or enter by a switch's tunnel, before or after the switch has them
// (frame-rules §10): to which endpoints of other hosts a frame goes, and from which ones it is taken.
type Crossing struct {
	fact plan.Fact
	// locate says where a MAC of a segment is, if that counts at present.
	locate func(Segment, plan.MAC) (overlay.Location, bool)

	host    map[netip.Addr]string   // of each endpoint that this host was told of
	members map[uint32][]netip.Addr // by VNI: the endpoints that get what is for several
	has     map[Segment]bool        // in which the switch has ports
	own     map[bool][]netip.Addr   // this host's endpoints, by whether they are IPv4
	// subnet is that of an endpoint, where replication is in two tiers; here that of this host.
	subnet func(netip.Addr) netip.Prefix
	here   netip.Prefix
	// find says who has an address; nil where the tunnel answers for nobody.
	find func(Segment, netip.Addr) (Owner, bool)
}

// Outer is a packet in which a frame leaves, or would have left.
type Outer struct {
	// Reason is why it does not leave; ReasonNone where it does.
	Reason abi.Reason
	VNI    uint32
	// From and To are the outer addresses; not valid where there are none.
	From, To netip.Addr
	// Host has the endpoint; "" where its name is not known.
	Host string
	// Known says how it is known that the destination is there; 0 for a frame that goes to all hosts of the segment.
	Known overlay.Source
	// TOS is that of the inner packet: DSCP and ECN (RFC 2983, RFC 6040).
	TOS byte
	// Asked is the address that the frame asks for and Owner who has it, where the host answers or leaves the answer to
	// the owner.
	Asked netip.Addr
	Owner Owner
}

// NewCrossing is the second run of a switch with a tunnel. locate may be nil: then nothing is known of any MAC.
func NewCrossing(sw *plan.Switch, fact plan.Fact, reach overlay.Reach,
	locate func(Segment, plan.MAC) (overlay.Location, bool)) *Crossing {
	c := &Crossing{fact: fact, locate: locate, host: map[netip.Addr]string{},
		members: map[uint32][]netip.Addr{}, has: map[Segment]bool{}, own: map[bool][]netip.Addr{}}
	if locate == nil {
		c.locate = func(Segment, plan.MAC) (l overlay.Location, ok bool) { return l, false }
	}
	for _, a := range fact.Endpoints {
		if len(c.own[a.Is4()]) < abi.LocalEndpoints {
			c.own[a.Is4()] = append(c.own[a.Is4()], a)
		}
	}
	for _, e := range reach.Endpoints {
		c.host[e.Address] = e.Host
	}
	for _, p := range sw.Ports {
		if p.VNI != 0 {
			c.add(p)
		}
	}
	for _, s := range reach.Segments {
		c.members[s.VNI] = c.receivers(s.Members)
	}
	if overlay.TwoTier(sw.Tunnel) && len(fact.Endpoints) > 0 {
		c.subnet, c.here = reach.SubnetOf, reach.SubnetOf(fact.Endpoints[0])
	}
	return c
}

// Own are this host's endpoints of the tunnel that can be used.
func (c *Crossing) Own() []netip.Addr { return c.fact.Endpoints }

// add adds the segments of a port with a VNI.
func (c *Crossing) add(p *plan.Port) {
	switch v := &p.Policy.VLAN.V; v.Mode {
	case plan.VLANTrunk:
		for id := range v.Set.All() {
			c.has[Segment{VNI: p.VNI, VLAN: id}] = true
		}
	case plan.VLANAccess:
		c.has[Segment{VNI: p.VNI, VLAN: v.ID}] = true
	default:
		c.has[Segment{VNI: p.VNI}] = true
	}
}

// receivers are one endpoint of each host, of a family that this host has as well.
func (c *Crossing) receivers(members []netip.Addr) (list []netip.Addr) {
	served := map[string]bool{}
	for _, a := range members {
		host, named := c.host[a]
		if !named || len(c.own[a.Is4()]) == 0 || host != "" && served[host] {
			continue
		}
		served[host] = true
		list = append(list, a)
	}
	return list[:min(len(list), abi.MaxSegmentMembers)]
}

// vlanInside is the VLAN of a frame inside its VNI; false for a tag of another kind than 802.1Q.
func vlanInside(frame []byte) (vlan uint16, ok bool) {
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeQ:
		return binary.BigEndian.Uint16(frame[14:]) & 0xfff, true
	case typeAD:
		return 0, false
	}
	return 0, true
}

// Leave says in which packets a frame of a VNI leaves that the switch has handed to the tunnel, with the tag that it
// has inside the VNI. One packet without a receiver says why there is none.
func (c *Crossing) Leave(vni uint32, frame []byte) []Outer {
	vlan, _ := vlanInside(frame)
	seg := Segment{VNI: vni, VLAN: vlan}
	if !c.has[seg] {
		return []Outer{{VNI: vni, Reason: abi.ReasonTunnelUnknownVni}}
	}
	if o, ok := c.answer(seg, frame); ok {
		return []Outer{o}
	}
	dst := plan.MAC(frame[:6])
	if !dst.IsGroup() {
		if l, ok := c.locate(seg, dst); ok {
			if _, named := c.host[l.Endpoint]; named {
				return []Outer{c.packet(vni, frame, l.Endpoint, l.Source)}
			}
		}
	}
	if len(c.members[vni]) == 0 {
		return []Outer{{VNI: vni, Reason: abi.ReasonTunnelNoEndpoint}}
	}
	var list []Outer
	proxied := map[netip.Prefix]bool{}
	for _, a := range c.members[vni] {
		if c.subnet != nil && dst.IsGroup() {
			in := c.subnet(a)
			if in != c.here && proxied[in] {
				continue // its proxy repeats the frame (S84)
			}
			proxied[in] = true
		}
		list = append(list, c.packet(vni, frame, a, 0))
	}
	return list
}

// Repeat says in which packets this host, as the proxy of its subnet, repeats a frame that it takes from an outer
// address (S84): to each other host of the subnet, if the frame is for a group and comes from another subnet.
func (c *Crossing) Repeat(from netip.Addr, vni uint32, frame []byte) (list []Outer) {
	if c.subnet == nil || !plan.MAC(frame[:6]).IsGroup() || c.subnet(from) == c.here {
		return nil
	}
	for _, a := range c.members[vni] {
		if c.subnet(a) == c.here {
			list = append(list, c.packet(vni, frame, a, 0))
		}
	}
	return list
}

// Learns says whether a tunnel that learns learns from a frame that it takes from an outer address: not if that may be
// another host's, which a proxy repeated, nor from a source that is no station's.
func (c *Crossing) Learns(from netip.Addr, frame []byte) bool {
	source := plan.MAC(frame[6:12])
	if source.IsGroup() || source.IsZero() {
		return false
	}
	return c.subnet == nil || !plan.MAC(frame[:6]).IsGroup() || c.subnet(from) != c.here
}

// packet is that for one endpoint.
func (c *Crossing) packet(vni uint32, frame []byte, to netip.Addr, known overlay.Source) Outer {
	o := Outer{VNI: vni, To: to, Host: c.host[to], Known: known, TOS: tosOf(frame)}
	own := c.own[to.Is4()]
	switch {
	case len(own) == 0:
		o.Reason = abi.ReasonTunnelNoEndpoint
		return o
	case len(frame)-ethernetHeader > max(c.fact.MTU-overlay.Headroom(to), 0):
		o.Reason = abi.ReasonTunnelMTU
		return o
	}
	o.From = overlay.Leaving(own, plan.MAC(frame[6:12]))
	return o
}

// tosOf is the byte with DSCP and ECN of the packet in a frame; 0 for one that is none of IP's.
func tosOf(frame []byte) byte {
	rest := frame[12:]
	if binary.BigEndian.Uint16(rest) == typeQ && len(rest) > 4 {
		rest = rest[4:]
	}
	if len(rest) < 4 {
		return 0
	}
	switch binary.BigEndian.Uint16(rest) {
	case typeIPv4:
		return rest[3]
	case typeIPv6:
		return rest[2]<<4 | rest[3]>>4
	}
	return 0
}

// Arrive says whether a frame is taken that came from an outer address, in a VNI (S105): ReasonNone if it is, and the
// switch has it then, by FrameFrom. An address that is not valid is taken to be a right one.
func (c *Crossing) Arrive(from netip.Addr, vni uint32, frame []byte) abi.Reason {
	if len(frame) < ethernetHeader || endsInTag(frame) {
		return abi.ReasonMalformed
	}
	if _, named := c.host[from]; from.IsValid() && !named {
		return abi.ReasonTunnelUnknownEndpoint
	}
	vlan, plain := vlanInside(frame)
	switch {
	case !plain || !c.has[Segment{VNI: vni, VLAN: vlan}]:
		return abi.ReasonTunnelUnknownVni
	case ofBridges(plan.MAC(frame[:6])):
		return abi.ReasonGuestLinkControl // the other host does not forward it, and this one's stack must not get it
	case hasTag(frame) && hasTag(frame[4:]) && len(frame) < ethernetHeader+2*4:
		return abi.ReasonMalformed // the kernel can't exchange the first tag
	}
	return abi.ReasonNone
}

// hasTag reports whether a frame of at least 14 bytes has a tag.
func hasTag(frame []byte) bool {
	t := binary.BigEndian.Uint16(frame[12:])
	return t == typeQ || t == typeAD
}

// endsInTag reports whether a frame ends within its tag or the two bytes after it: the kernel drops such a frame before
// any program sees it, and nobody counts it.
func endsInTag(frame []byte) bool { return hasTag(frame) && len(frame) < ethernetHeader+4+2 }
