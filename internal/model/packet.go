package model

import "encoding/binary"

// The model's one reader of layers 3 and 4 (frame-rules §0, "The packet").

// packet is layers 3 and 4 of a frame. A packet that is not IP has only kind and bytes set.
type packet struct {
	kind     uint16 // type behind the tags
	bytes    []byte // from layer 3 to the packet's end, without padding
	version  int    // 4, 6, or 0 if it is not IP
	src, dst []byte // addresses, as they stand in the frame
	protocol uint8
	tos, ttl uint8
	fragment bool   // it is one of several fragments
	later    bool   // it is not the first fragment
	layer4   []byte // what follows the IP header and its extensions; nil for a later fragment
	ports    []byte // source and destination, 4 bytes; nil for none
	icmp     []byte // type and code, 2 bytes; nil for none
	tcpFlags uint16
}

// Numbers of protocols and extension headers.
const (
	hopByHop, protoICMP, protoTCP, protoUDP, protoDCCP            = 0, 1, 6, 17, 33
	routing, fragmentHeader, authentication, protoICMPv6, options = 43, 44, 51, 58, 60
	protoSCTP, mobility, protoUDPLite, hostIdentity, shim6        = 132, 135, 136, 139, 140

	maxExtensions = 8
)

// readPacket reads the packet of a frame that is not malformed.
func readPacket(frame []byte) packet {
	rest := frame[12:]
	for range 2 {
		if isTag(binary.BigEndian.Uint16(rest)) {
			rest = rest[4:]
		}
	}
	p := packet{kind: binary.BigEndian.Uint16(rest), bytes: rest[2:]}
	switch p.kind {
	case typeIPv4:
		p.readIPv4()
	case typeIPv6:
		p.readIPv6()
	}
	return p
}

func (p *packet) readIPv4() {
	b := p.bytes
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	header := int(b[0]&15) * 4
	if header < 20 || header > len(b) {
		return
	}
	if n := int(binary.BigEndian.Uint16(b[2:])); n >= header && n <= len(b) {
		p.bytes = b[:n]
	}
	p.version, p.protocol, p.tos, p.ttl = 4, b[9], b[1], b[8]
	p.src, p.dst = b[12:16], b[16:20]
	more, offset := b[6]&0x20 != 0, binary.BigEndian.Uint16(b[6:])&0x1fff
	p.fragment, p.later = more || offset > 0, offset > 0
	if offset == 0 {
		p.readLayer4(p.bytes[header:])
	}
}

func (p *packet) readIPv6() {
	b := p.bytes
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	if n := int(binary.BigEndian.Uint16(b[4:])); n > 0 && n+40 <= len(b) {
		p.bytes = b[:n+40]
	}
	p.version, p.tos, p.ttl = 6, uint8(binary.BigEndian.Uint16(b)>>4), b[7]
	p.src, p.dst = b[8:24], b[24:40]
	p.protocol = b[6]
	rest := p.bytes[40:]
	for range maxExtensions {
		n, found := extension(p.protocol, rest)
		if !found {
			break
		}
		offset := uint16(0)
		if p.protocol == fragmentHeader {
			word := binary.BigEndian.Uint16(rest[2:])
			offset = word >> 3
			p.fragment = p.fragment || offset > 0 || word&1 != 0
		}
		p.protocol, rest = rest[0], rest[min(n, len(rest)):]
		if offset > 0 {
			p.later = true
			return
		}
	}
	p.readLayer4(rest)
}

// extension is the length of an IPv6 extension header with that number. found is false for other headers, and if fewer
// than 8 bytes of it are in the packet.
func extension(number uint8, b []byte) (length int, found bool) {
	if len(b) < 8 {
		return 0, false
	}
	switch number {
	case hopByHop, routing, options, mobility, hostIdentity, shim6:
		return (int(b[1]) + 1) * 8, true
	case fragmentHeader:
		return 8, true
	case authentication:
		return (int(b[1]) + 2) * 4, true
	}
	return 0, false
}

// readLayer4 reads the beginning of layer 4 from b, which contains as much of it as the packet has.
func (p *packet) readLayer4(b []byte) {
	p.layer4 = b
	switch p.protocol {
	case protoTCP, protoUDP, protoUDPLite, protoSCTP, protoDCCP:
		if len(b) >= 4 {
			p.ports = b[:4]
		}
	case protoICMP, protoICMPv6:
		if (p.protocol == protoICMP) == (p.version == 4) && len(b) >= 2 {
			p.icmp = b[:2]
		}
	}
	if p.protocol == protoTCP && len(b) >= 14 {
		p.tcpFlags = binary.BigEndian.Uint16(b[12:]) & 0xfff
	}
}
