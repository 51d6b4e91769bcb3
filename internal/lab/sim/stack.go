package sim

import (
	"net/netip"
	"time"

	"heddle/internal/plan"
)

const (
	defaultTTL = 64
	// maxWaiting is how many packets may wait for an unresolved neighbour.
	maxWaiting = 16
	// arpPatience is the shortest time between two ARP requests for the same target.
	arpPatience = time.Second
)

// stack is the IP stack of a VM, a router or a host: it answers ARP for its addresses, answers pings, and forwards if
// it is a router's. What it has resolved stays resolved, so that a measurement contains no address resolution.
type stack struct {
	w          *world
	interfaces []*iface
	gateway    netip.Addr
	forwards   bool
	// heard, when set, is called for every echo reply for this stack.
	heard func(echo)
}

// iface is an interface of a stack with its neighbours.
type iface struct {
	*device
	addresses  []netip.Prefix
	neighbours map[netip.Addr]*neighbour
}

// neighbour is a resolved address, or the packets that wait for its resolution.
type neighbour struct {
	mac     plan.MAC // zero: unresolved
	asked   time.Duration
	waiting []ipv4
}

func (s *stack) plug(d *device, addresses []netip.Prefix) {
	s.interfaces = append(s.interfaces, &iface{device: d, addresses: addresses,
		neighbours: map[netip.Addr]*neighbour{}})
}

func (s *stack) interfaceOf(d *device) *iface {
	for _, i := range s.interfaces {
		if i.device == d {
			return i
		}
	}
	return nil
}

// receive accepts untagged frames for the interface and for groups. It ignores others, which a switch floods or copies
// to it, like every stack that is not in promiscuous mode.
func (s *stack) receive(d *device, frame []byte) {
	in := s.interfaceOf(d)
	if in == nil || len(frame) < etherHeader {
		return
	}
	dst := plan.MAC(frame[0:6])
	if dst != in.mac && !dst.IsGroup() {
		return
	}
	switch kind, payload := uint16(frame[12])<<8|uint16(frame[13]), frame[etherHeader:]; kind {
	case typeARP:
		if a, ok := parseARP(payload); ok {
			s.arp(in, a)
		}
	case typeIPv4:
		if p, ok := parseIPv4(payload); ok {
			s.packet(p, dst == in.mac)
		}
	}
}

// arp follows RFC 826, "packet reception": the sender is stored if it is known already, or if it asks for this very
// interface.
func (s *stack) arp(in *iface, a arp) {
	mine := in.has(a.targetIP)
	n := in.neighbours[a.senderIP]
	if n == nil && mine {
		n = &neighbour{}
		in.neighbours[a.senderIP] = n
	}
	if n != nil {
		n.mac = a.sender
		waiting := n.waiting
		n.waiting = nil
		for _, p := range waiting {
			s.transmit(in, a.senderIP, p)
		}
	}
	if mine && a.op == arpRequest {
		answer := arp{op: arpReply, sender: in.mac, senderIP: a.targetIP, target: a.sender, targetIP: a.senderIP}
		s.w.send(in.device, ethernet(a.sender, in.mac, typeARP, answer.bytes()))
	}
}

func (i *iface) has(a netip.Addr) bool {
	for _, p := range i.addresses {
		if p.Addr() == a {
			return true
		}
	}
	return false
}

// packet processes a packet that arrived; forMe says whether its frame was for this stack alone, because no other
// packet is forwarded (RFC 1812, section 5.3.4).
func (s *stack) packet(p ipv4, forMe bool) {
	for _, i := range s.interfaces {
		if i.has(p.dst) {
			s.local(p)
			return
		}
	}
	if s.forwards && forMe && p.ttl > 1 {
		p.ttl--
		s.output(p)
	}
}

// local answers echo requests and passes replies on.
func (s *stack) local(p ipv4) {
	e, ok := parseEcho(p.payload)
	switch {
	case p.proto != protoICMP || !ok:
	case e.reply:
		if s.heard != nil {
			s.heard(e)
		}
	default:
		e.reply = true
		s.output(ipv4{src: p.dst, dst: p.src, ttl: defaultTTL, proto: protoICMP, payload: e.bytes()})
	}
}

// output sends a packet to a neighbour on one of the networks, else to the gateway. It returns whether there is a
// route.
func (s *stack) output(p ipv4) bool {
	for _, next := range []netip.Addr{p.dst, s.gateway} {
		for _, i := range s.interfaces {
			if i.reaches(next) {
				s.transmit(i, next, p)
				return true
			}
		}
	}
	return false
}

func (i *iface) reaches(a netip.Addr) bool {
	for _, p := range i.addresses {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// transmit sends a packet to a neighbour, or asks for the neighbour's address and lets the packet wait.
func (s *stack) transmit(out *iface, to netip.Addr, p ipv4) {
	n := out.neighbours[to]
	if n != nil && !n.mac.IsZero() {
		s.w.send(out.device, ethernet(n.mac, out.mac, typeIPv4, p.bytes()))
		return
	}
	now := s.w.loop.now
	first := n == nil
	if first {
		n = &neighbour{}
		out.neighbours[to] = n
	}
	if len(n.waiting) < maxWaiting {
		n.waiting = append(n.waiting, p)
	}
	if first || now-n.asked >= arpPatience {
		n.asked = now
		question := arp{op: arpRequest, sender: out.mac, senderIP: out.source(to), targetIP: to}
		s.w.send(out.device, ethernet(broadcast, out.mac, typeARP, question.bytes()))
	}
}

var broadcast = plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// source is the interface's own address on a neighbour's network.
func (i *iface) source(neighbour netip.Addr) netip.Addr {
	for _, p := range i.addresses {
		if p.Contains(neighbour) {
			return p.Addr()
		}
	}
	return netip.IPv4Unspecified()
}
