package model

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// Owner is who has an address of an overlay segment, as far as the host knows.
type Owner struct {
	MAC plan.MAC
	// Here: behind a port of this host.
	Here bool
	// Told by the controllers; else heard from the owner, that long ago.
	Told bool
	Age  time.Duration
	// Advertised: an IPv6 owner has said itself whether it is a router (Router).
	Advertised, Router bool
	// Rival has had the address before; zero for none.
	Rival plan.MAC
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
	// Answers: the frame answers the question of one station. Group: it is for several stations.
	Answers, Group bool
	// Probed is the address of which a probe finds out whether another station has it; not valid if it is none.
	Probed netip.Addr
}

const (
	ndSolicitation  = 135
	ndAdvertisement = 136
	ndForm          = ethernetHeader + 40 + 32 // with one option
	ndBare          = ethernetHeader + 40 + 24 // without one
)

// ReadNeighbour reads a frame without its tag; false for one that is none of these.
func ReadNeighbour(frame []byte) (n Neighbour, ok bool) {
	if len(frame) < ethernetHeader || frame[6]&1 != 0 {
		return n, false
	}
	defer func() { n.Group = frame[0]&1 != 0 }()
	switch body := frame[ethernetHeader:]; binary.BigEndian.Uint16(frame[12:]) {
	case typeARP:
		return readARP(frame, body)
	case typeIPv6:
		if len(frame) >= ndBare {
			if n.Probed, ok = readProbe(body); ok {
				return n, true
			}
		}
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
		if a[7] == 1 && sender.IsUnspecified() && a[24] != 0 && a[24] != 127 && a[24] < 224 {
			n.Probed = target
		}
		return n, true
	}
	if !slices.Equal(a[8:14], frame[6:12]) {
		n.Spoofed = true
		return n, true
	}
	n.Sender, n.Answers = sender, a[7] == 2 && frame[0]&1 == 0
	if a[7] == 1 && plan.MAC(frame[:6]) == (plan.MAC{255, 255, 255, 255, 255, 255}) && target != sender {
		n.Asked = target
	}
	return n, true
}

// isStation reports whether a station can have an IPv6 address.
func isStation(a netip.Addr) bool {
	return !a.IsMulticast() && !a.IsUnspecified() && a != netip.IPv6Loopback()
}

// readProbe reads a solicitation from none, which finds out whether another station has an address (RFC 4862).
func readProbe(p []byte) (target netip.Addr, ok bool) {
	length := binary.BigEndian.Uint16(p[4:])
	target = netip.AddrFrom16([16]byte(p[48:]))
	if p[0]>>4 != 6 || p[6] != 58 || p[7] != 255 || p[40] != ndSolicitation || p[41] != 0 ||
		length != 24 && length != 32 || netip.AddrFrom16([16]byte(p[8:])) != netip.IPv6Unspecified() ||
		!isStation(target) {
		return netip.Addr{}, false
	}
	return target, true
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
		n.Answers = m[4]&0x40 != 0 && frame[0]&1 == 0
	case solicits:
		n.Sender = source
		if p[24] == 0xff {
			n.Asked = target
		}
	}
	return n, true
}

// Question is an address that a frame asks for, and what the tunnel knows of it.
type Question struct {
	// Asked is not valid where the frame asks for none, or by a packet of another form.
	Asked netip.Addr
	// Owner is who has it, if that is Known; or who was heard last if that is Contested.
	Owner            Owner
	Known, Contested bool
	// Unverified: it is not sure that the Owner has it (frame-rules §10).
	Unverified bool
	// Again: the asker was told that Owner a moment ago, and asks again.
	Again bool
	// Announces: the question says that the asker has its own address now.
	Announces bool
}

// hear takes in who has sent a frame of a segment, and says what else the frame asks; false for a packet of another
// form. here: the frame is from a port of this host.
func (c *Crossing) hear(seg Segment, frame []byte, here bool, now time.Duration) (h Hearing, n Neighbour, ok bool) {
	if c.hold == 0 {
		return h, n, false
	}
	if n, ok = ReadNeighbour(withoutTag(frame)); !ok {
		return h, n, false
	}
	return c.memory.hear(seg, plan.MAC(frame[6:12]), &n, here, now, c.hold), n, true
}

// withoutTag is a frame without its outermost tag of 802.1Q.
func withoutTag(frame []byte) []byte {
	if binary.BigEndian.Uint16(frame[12:]) != typeQ {
		return frame
	}
	return slices.Concat(frame[:12], frame[16:])
}

// ask hears who has sent a frame that leaves, and answers what it asks; false if others are to be asked.
func (c *Crossing) ask(seg Segment, frame []byte, now time.Duration, l *Left) bool {
	var n Neighbour
	var ok bool
	if l.Heard, n, ok = c.hear(seg, frame, true, now); !ok || !n.Asked.IsValid() {
		return false
	}
	q, asker, b := &l.Question, plan.MAC(frame[6:12]), &c.memory.bindings
	at := overlay.Address{VNI: seg.VNI, VLAN: seg.VLAN, IP: n.Asked}
	*q = b.find(at, asker, now, c.hold)
	o := Outer{VNI: seg.VNI, Asked: n.Asked, Owner: q.Owner, Reason: abi.ReasonNeighbourAnswered}
	switch {
	case !q.Known || q.Owner.MAC == asker:
		return false
	case n.Asked.Is6() && !q.Owner.Advertised && !q.Owner.Here:
		return false
	}
	used := b.shareOf(Station{seg.VNI, seg.VLAN, asker}, now)
	if q.Announces = l.Heard.Announces; q.Announces {
		b.question(at, now)
		return false
	}
	if q.Again = b.asksAgain(at, q.Owner.MAC, used, now); q.Again {
		return false
	}
	switch {
	case q.Owner.Here:
		o.Reason = abi.ReasonNeighbourHere
	default:
		if used.Answers >= abi.AnswersPerSecond {
			o.Reason = abi.ReasonNeighbourLimit
			break
		}
		used.Answers++
		l.Answer = answerTo(frame, q.Owner)
	}
	l.Outers = []Outer{o}
	return true
}

// answerTo is the owner's answer to a frame that asks (RFC 826, RFC 4861), with the same tag and trailing bytes.
func answerTo(ask []byte, owner Owner) []byte {
	a := slices.Clone(ask)
	copy(a, ask[6:12])
	copy(a[6:], owner.MAC[:])
	body := a[len(a)-len(withoutTag(a))+ethernetHeader:]
	if withoutTag(a)[12] == typeARP>>8 {
		asker, wanted := slices.Clone(body[8:18]), slices.Clone(body[24:28])
		body[7] = 2
		copy(body[8:], owner.MAC[:])
		copy(body[14:], wanted)
		copy(body[18:], asker)
		return a
	}
	asker, wanted, message := slices.Clone(body[8:24]), slices.Clone(body[48:64]), body[40:72]
	copy(body[8:], wanted)
	copy(body[24:], asker)
	copy(message, []byte{ndAdvertisement, 0, 0, 0, 0x60, 0, 0, 0})
	if owner.Router {
		message[4] |= 0x80
	}
	message[24] = 2
	copy(message[26:], owner.MAC[:])
	pseudo := slices.Concat(body[8:40], []byte{0, 0, 0, 32, 0, 0, 0, protoICMPv6}, message)
	binary.BigEndian.PutUint16(message[2:], ^sum(pseudo))
	return a
}
