package model

import (
	"encoding/binary"
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// ethernetHeader is the length of two addresses and a type, in bytes.
const ethernetHeader = 14

// Crossing is the second run of frames that leave or enter by a switch's tunnel, before or after the switch has them
// (frame-rules §10): to which endpoints of other hosts a frame goes, and from which ones it is taken.
type Crossing struct {
	fact   plan.Fact
	hold   time.Duration // for which a binding counts; 0 = the tunnel answers for nobody
	learns bool
	memory *memory

	static  map[overlay.Key]netip.Addr // where the file says that MACs are
	host    map[netip.Addr]string      // of each endpoint that this host was told of
	mtu     map[netip.Addr]int         // of the path to it, where that is known
	members map[uint32][]netip.Addr    // by VNI: the endpoints that get what is for several
	has     map[Segment]bool           // in which the switch has ports
	own     map[bool][]netip.Addr      // this host's endpoints, by whether they are IPv4
	// subnet is that of an endpoint, where replication is in two tiers; here that of this host.
	subnet func(netip.Addr) netip.Prefix
	here   netip.Prefix
}

// Left is what a tunnel did with a frame on its way out.
type Left struct {
	// Outers are the packets in which it leaves. One without a receiver says why there is none.
	Outers []Outer
	// Heard is what the tunnel made of who says that it sent the frame, and Question what the frame asks.
	Heard    Hearing
	Question Question
	// Answer is the frame that the host gives back to the segment, with the tag that it has inside the VNI: the answer
	// of an owner, or an ICMP error. nil for none.
	Answer []byte
}

// Arrival is what a tunnel did with a frame on its way in.
type Arrival struct {
	// Reason is why the frame is not taken (S105); ReasonNone if it is, and the switch has it then.
	Reason abi.Reason
	// Repeated are the packets in which this host repeats it as the proxy of its subnet.
	Repeated []Outer
	Heard    Hearing
	Placed   Placing
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

// NewCrossing is the second run of a switch with a tunnel that knows nothing of other hosts' guests yet.
func NewCrossing(sw *plan.Switch, fact plan.Fact, reach overlay.Reach) *Crossing {
	c := &Crossing{fact: fact, hold: sw.Tunnel.Hold, learns: reach.Learn, memory: newMemory(),
		static: map[overlay.Key]netip.Addr{}, host: map[netip.Addr]string{}, mtu: map[netip.Addr]int{},
		members: map[uint32][]netip.Addr{},
		has:     map[Segment]bool{}, own: map[bool][]netip.Addr{}}
	for _, a := range fact.Endpoints {
		if len(c.own[a.Is4()]) < abi.LocalEndpoints {
			c.own[a.Is4()] = append(c.own[a.Is4()], a)
		}
	}
	for _, e := range reach.Endpoints {
		c.host[e.Address] = e.Host
		if e.MTU != 0 {
			c.mtu[e.Address] = e.MTU
		}
	}
	for _, p := range sw.Ports {
		if p.VNI != 0 {
			c.add(p)
		}
	}
	for _, l := range overlay.StaticOf(sw) {
		c.static[l.Key] = l.Endpoint
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

// Leave says what becomes of a frame of a VNI that the switch has handed to the tunnel, with the tag that it has inside
// the VNI. sender is the port that sent it; the zero value is none of this host's.
func (c *Crossing) Leave(sender plan.PortID, vni uint32, frame []byte, now time.Duration) (l Left) {
	vlan, _ := vlanInside(frame)
	seg := Segment{VNI: vni, VLAN: vlan}
	if !c.has[seg] {
		l.Outers = []Outer{{VNI: vni, Reason: abi.ReasonTunnelUnknownVni}}
		return l
	}
	if c.ask(seg, frame, now, &l) {
		return l
	}
	l.Outers = c.packets(seg, frame, now)
	l.Answer = c.tooBig(frame, l.Outers, func() bool {
		return sender != plan.PortID{} && c.memory.takeError(sender, now)
	})
	return l
}

// packets are those in which a frame leaves.
func (c *Crossing) packets(seg Segment, frame []byte, now time.Duration) []Outer {
	vni, dst := seg.VNI, plan.MAC(frame[:6])
	if !dst.IsGroup() {
		if l, ok := c.locate(Station{vni, seg.VLAN, dst}, now); ok {
			return []Outer{c.packet(vni, frame, l.Endpoint, l.Source)}
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

// repeat says in which packets this host, as the proxy of its subnet, repeats a frame that it takes from an outer
// address (S84): to each other host of the subnet, if the frame is for a group and comes from another subnet.
func (c *Crossing) repeat(from netip.Addr, vni uint32, frame []byte) (list []Outer) {
	if c.subnet == nil || !from.IsValid() || !plan.MAC(frame[:6]).IsGroup() || c.subnet(from) == c.here {
		return nil
	}
	for _, a := range c.members[vni] {
		if c.subnet(a) == c.here {
			list = append(list, c.packet(vni, frame, a, 0))
		}
	}
	return list
}

// room is the longest inner packet that reaches an endpoint.
func (c *Crossing) room(to netip.Addr) int {
	room := max(c.fact.MTU-overlay.Headroom(to), 0)
	if path, known := c.mtu[to]; known {
		room = min(room, max(path-overlay.Headroom(to), 1))
	}
	return room
}

// packet is that for one endpoint.
func (c *Crossing) packet(vni uint32, frame []byte, to netip.Addr, known overlay.Source) Outer {
	o := Outer{VNI: vni, To: to, Host: c.host[to], Known: known, TOS: tosOf(frame)}
	own := c.own[to.Is4()]
	switch {
	case len(own) == 0:
		o.Reason = abi.ReasonTunnelNoEndpoint
		return o
	case len(frame)-ethernetHeader > c.room(to):
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

// Arrive says what becomes of a frame that comes from an outer address, in a VNI. An address that is not valid is taken
// to be a right one: nothing is learned from it.
func (c *Crossing) Arrive(from netip.Addr, vni uint32, frame []byte, now time.Duration) (a Arrival) {
	if a.Reason = c.takes(from, vni, frame); a.Reason != abi.ReasonNone {
		return a
	}
	vlan, _ := vlanInside(frame)
	seg := Segment{VNI: vni, VLAN: vlan}
	a.Repeated = c.repeat(from, vni, frame)
	a.Heard, _, _ = c.hear(seg, frame, false, now)
	a.Placed = c.place(from, seg, frame, now)
	return a
}

// takes says whether a frame is taken (S105).
func (c *Crossing) takes(from netip.Addr, vni uint32, frame []byte) abi.Reason {
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
