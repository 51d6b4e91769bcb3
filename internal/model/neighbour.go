package model

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Owner is who has an address of an overlay segment, as far as the host knows.
type Owner struct {
	MAC plan.MAC
	// Here: behind a port of this host.
	Here bool
	// Spent: the asker was answered as often in this second as it may be.
	Spent bool
	// Told by the controllers; else heard from the owner, that long ago.
	Told bool
	Age  time.Duration
	// Advertised: an IPv6 owner has said itself whether it is a router (Router).
	Advertised, Router bool
}

// Neighbour is what the tunnel reads of ARP, or of a solicitation or advertisement (frame-rules §10).
type Neighbour struct {
	// Sender is the address that the sender of the frame has; not valid where it says of none, as a probe does, or
	// names another MAC (Spoofed).
	Sender  netip.Addr
	Spoofed bool
	// Asked is the address whose owner is asked for, of all or of a group; not valid if it is no such question.
	Asked netip.Addr
	// Advertised: the sender says whether it is a router (Router).
	Advertised, Router bool
}

const (
	ndSolicitation  = 135
	ndAdvertisement = 136
	ndForm          = ethernetHeader + 40 + 32 // with one option
)

// ReadNeighbour reads a frame without its tag; false for one that is none of these.
func ReadNeighbour(frame []byte) (n Neighbour, ok bool) {
	if len(frame) < ethernetHeader || frame[6]&1 != 0 {
		return n, false
	}
	switch body := frame[ethernetHeader:]; binary.BigEndian.Uint16(frame[12:]) {
	case typeARP:
		return readARP(frame, body)
	case typeIPv6:
		if len(frame) >= ndForm {
			return readND(frame, body)
		}
	}
	return n, false
}

func readARP(frame, a []byte) (n Neighbour, ok bool) {
	if len(a) < 28 || binary.BigEndian.Uint64(a)>>16 != 0x000108000604 || a[6] != 0 || a[7] < 1 || a[7] > 2 {
		return n, false
	}
	sender, target := netip.AddrFrom4([4]byte(a[14:])), netip.AddrFrom4([4]byte(a[24:]))
	if a[14] == 0 || a[14] == 127 || a[14] >= 224 {
		return n, true
	}
	if !slices.Equal(a[8:14], frame[6:12]) {
		n.Spoofed = true
		return n, true
	}
	n.Sender = sender
	if a[7] == 1 && plan.MAC(frame[:6]) == (plan.MAC{255, 255, 255, 255, 255, 255}) && target != sender {
		n.Asked = target
	}
	return n, true
}

// isStation reports whether a station can have an IPv6 address.
func isStation(a netip.Addr) bool {
	return !a.IsMulticast() && !a.IsUnspecified() && a != netip.IPv6Loopback()
}

func readND(frame, p []byte) (n Neighbour, ok bool) {
	m := p[40:]
	source, target := netip.AddrFrom16([16]byte(p[8:])), netip.AddrFrom16([16]byte(m[8:]))
	solicits := m[0] == ndSolicitation && m[24] == 1
	if p[0]>>4 != 6 || binary.BigEndian.Uint16(p[4:]) != 32 || p[6] != 58 || p[7] != 255 || m[1] != 0 || m[25] != 1 ||
		!isStation(target) || !solicits && (m[0] != ndAdvertisement || m[24] != 2) {
		return n, false
	}
	if solicits && !isStation(source) {
		return n, true
	}
	if !slices.Equal(m[26:32], frame[6:12]) {
		n.Spoofed = true
		return n, true
	}
	switch {
	case !solicits && m[4]&0x20 != 0:
		n.Sender, n.Advertised, n.Router = target, true, m[4]&0x80 != 0
	case solicits:
		n.Sender = source
		if p[24] == 0xff {
			n.Asked = target
		}
	}
	return n, true
}

// Answering makes the tunnel answer who has an address. find says who the host believes to have it, if anybody.
func (c *Crossing) Answering(find func(Segment, netip.Addr) (Owner, bool)) { c.find = find }

// answer is what becomes of a copy for the tunnel that asks for an address whose owner is known; false for another one.
func (c *Crossing) answer(seg Segment, frame []byte) (o Outer, ok bool) {
	bare := frame
	if seg.VLAN != 0 || binary.BigEndian.Uint16(frame[12:]) == typeQ {
		bare = slices.Concat(frame[:12], frame[16:])
	}
	n, is := ReadNeighbour(bare)
	if c.find == nil || !is || !n.Asked.IsValid() {
		return o, false
	}
	owner, known := c.find(seg, n.Asked)
	if known && owner.Spent && !owner.Here {
		return Outer{VNI: seg.VNI, Asked: n.Asked, Owner: owner, Reason: abi.ReasonNeighbourLimit}, true
	}
	o = Outer{VNI: seg.VNI, Asked: n.Asked, Owner: owner, Reason: abi.ReasonNeighbourAnswered}
	switch {
	case !known || owner.MAC == plan.MAC(frame[6:12]):
		return o, false
	case owner.Here:
		o.Reason = abi.ReasonNeighbourHere
	case n.Asked.Is6() && !owner.Advertised:
		return o, false
	}
	return o, true
}
