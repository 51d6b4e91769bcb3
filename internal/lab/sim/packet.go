package sim

import (
	"encoding/binary"
	"net/netip"

	"heddle/internal/plan"
)

// Ethernet types and IP protocol numbers (IANA).
const (
	typeIPv4  = 0x0800
	typeARP   = 0x0806
	protoICMP = 1
)

// Sizes of headers, bytes.
const (
	etherHeader = 14
	arpLength   = 28
	ipHeader    = 20
	icmpHeader  = 8
)

// ethernet is a frame without FCS and, as on a veth pair, without padding.
func ethernet(dst, src plan.MAC, kind uint16, payload []byte) []byte {
	f := make([]byte, 0, etherHeader+len(payload))
	f = append(append(f, dst[:]...), src[:]...)
	f = binary.BigEndian.AppendUint16(f, kind)
	return append(f, payload...)
}

// arp is an ARP message for IPv4 over Ethernet (RFC 826).
type arp struct {
	op                 uint16 // arpRequest or arpReply
	sender, target     plan.MAC
	senderIP, targetIP netip.Addr
}

const (
	arpRequest = 1
	arpReply   = 2
)

func (a arp) bytes() []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, byte(a.op)} // Ethernet, IPv4, their lengths
	b = append(append(b, a.sender[:]...), a.senderIP.AsSlice()...)
	return append(append(b, a.target[:]...), a.targetIP.AsSlice()...)
}

// parseARP reads an ARP message; ok is false if it is not one for IPv4 over Ethernet.
func parseARP(b []byte) (a arp, ok bool) {
	if len(b) < arpLength || [6]byte(b) != [6]byte{0, 1, 8, 0, 6, 4} {
		return a, false
	}
	return arp{
		op:     binary.BigEndian.Uint16(b[6:]),
		sender: plan.MAC(b[8:14]), senderIP: netip.AddrFrom4([4]byte(b[14:18])),
		target: plan.MAC(b[18:24]), targetIP: netip.AddrFrom4([4]byte(b[24:28])),
	}, true
}

// ipv4 is an IPv4 packet without options (RFC 791).
type ipv4 struct {
	src, dst netip.Addr
	ttl      uint8
	proto    uint8
	payload  []byte
}

func (p ipv4) bytes() []byte {
	b := make([]byte, 0, ipHeader+len(p.payload))
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(ipHeader+len(p.payload)))
	b = append(b, 0, 0, 0x40, 0, p.ttl, p.proto, 0, 0) // not to be fragmented
	b = append(append(b, p.src.AsSlice()...), p.dst.AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, p.payload...)
}

// parseIPv4 reads a packet; ok is false if it is cut short, has options or a wrong checksum.
func parseIPv4(b []byte) (p ipv4, ok bool) {
	if len(b) < ipHeader || b[0] != 0x45 || checksum(b[:ipHeader]) != 0 {
		return p, false
	}
	length := int(binary.BigEndian.Uint16(b[2:]))
	if length < ipHeader || length > len(b) {
		return p, false
	}
	return ipv4{
		src: netip.AddrFrom4([4]byte(b[12:16])), dst: netip.AddrFrom4([4]byte(b[16:20])),
		ttl: b[8], proto: b[9], payload: b[ipHeader:length],
	}, true
}

// echo is an ICMP echo request or reply (RFC 792).
type echo struct {
	reply   bool
	id, seq uint16
	data    []byte
}

const (
	icmpEchoReply   = 0
	icmpEchoRequest = 8
)

func (e echo) bytes() []byte {
	b := make([]byte, icmpHeader, icmpHeader+len(e.data))
	b[0] = icmpEchoRequest
	if e.reply {
		b[0] = icmpEchoReply
	}
	binary.BigEndian.PutUint16(b[4:], e.id)
	binary.BigEndian.PutUint16(b[6:], e.seq)
	b = append(b, e.data...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}

// parseEcho reads an echo message; ok is false for other ICMP messages.
func parseEcho(b []byte) (e echo, ok bool) {
	if len(b) < icmpHeader || checksum(b) != 0 || b[1] != 0 || b[0] != icmpEchoReply && b[0] != icmpEchoRequest {
		return e, false
	}
	return echo{
		reply: b[0] == icmpEchoReply,
		id:    binary.BigEndian.Uint16(b[4:]), seq: binary.BigEndian.Uint16(b[6:]), data: b[icmpHeader:],
	}, true
}

// checksum is the internet checksum (RFC 1071); over a header that contains its own checksum it is 0.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
