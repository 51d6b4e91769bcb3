package model

import "encoding/binary"

// misreadings are deliberate mistakes of the reader of layers 3 and 4.
var misreadings = map[string]func(*stages){
	"packet: no extension header is followed": misread(func(p *packet) {
		if p.version == 6 && p.bytes[6] != p.protocol {
			p.protocol, p.ports, p.icmp, p.tcpFlags = p.bytes[6], nil, nil, 0
		}
	}),
	"packet: nine extension headers are followed": misread(func(p *packet) {
		if p.version != 6 || p.fragment {
			return
		}
		if n, next := follow(p, maxExtensions+1); n > maxExtensions {
			p.protocol = next
		}
	}),
	"packet: what is behind a second tag is not IP": func(s *stages) {
		s.packet = func(frame []byte) packet {
			if h, _ := read(frame); h.tags == 2 {
				return packet{kind: h.inner, bytes: frame[18:]}
			}
			return readPacket(frame)
		}
	},
	"packet: padding has ports": misread(func(p *packet) {
		if p.version == 4 && p.ports == nil && p.icmp == nil && fragmentOffset(p) == 0 {
			p.readLayer4(p.bytes[headerOf(p):cap(p.bytes)])
		}
	}),
	"packet: a header of another version is one of IPv4": misread(func(p *packet) {
		if p.kind == typeIPv4 && p.version == 0 && len(p.bytes) >= 20 {
			p.bytes = append([]byte{0x40 | p.bytes[0]&15}, p.bytes[1:]...)
			p.readIPv4()
		}
	}),
	"packet: a later fragment has ports": misread(func(p *packet) {
		if p.version == 4 && p.fragment && p.ports == nil {
			p.readLayer4(p.bytes[headerOf(p):])
		}
	}),
	"packet: options are not stepped over": misread(func(p *packet) {
		if p.version == 4 && headerOf(p) > 20 && p.ports != nil {
			p.readLayer4(p.bytes[20:])
		}
	}),
	"packet: every fragment header makes a fragment that has no ports": misread(func(p *packet) {
		if p.version == 6 && p.bytes[6] == fragmentHeader {
			p.fragment, p.ports, p.icmp, p.tcpFlags = true, nil, nil, 0
		}
	}),
}

func headerOf(p *packet) int { return 4 * int(p.bytes[0]&15) }

func fragmentOffset(p *packet) uint16 { return binary.BigEndian.Uint16(p.bytes[6:]) & 0x1fff }

// follow follows the extension headers of an IPv6 packet, so many at most, and gives how many there were and what comes
// then.
func follow(p *packet, most int) (n int, next uint8) {
	next, rest := p.bytes[6], p.bytes[40:]
	for ; n < most; n++ {
		length, found := extension(next, rest)
		if !found {
			break
		}
		next, rest = rest[0], rest[min(length, len(rest)):]
	}
	return n, next
}
