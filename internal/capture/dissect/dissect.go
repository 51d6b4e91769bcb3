package dissect

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Ethernet types.
const (
	typeIPv4   = 0x0800
	typeARP    = 0x0806
	typeVLAN   = 0x8100
	typeIPv6   = 0x86dd
	typeSlow   = 0x8809
	typeAD     = 0x88a8
	typeLLDP   = 0x88cc
	typeRARP   = 0x8035
	leastType  = 0x0600 // below it is a length (IEEE 802.3)
	headerSize = 14
)

// Line says what a frame is. f are the captured bytes of the frame; length is the whole frame's length in bytes.
func Line(f []byte, length int) string {
	if len(f) < headerSize {
		return fmt.Sprintf("%d bytes: too short for Ethernet", length)
	}
	dst, src, kind, rest := f[:6], f[6:12], binary.BigEndian.Uint16(f[12:]), f[headerSize:]
	var tags strings.Builder
	for (kind == typeVLAN || kind == typeAD) && len(rest) >= 4 {
		name := "vlan"
		if kind == typeAD {
			name = "ad-vlan"
		}
		tci := binary.BigEndian.Uint16(rest)
		fmt.Fprintf(&tags, "%s %d", name, tci&0xfff)
		if p := tci >> 13; p > 0 {
			fmt.Fprintf(&tags, " p%d", p)
		}
		tags.WriteString(", ")
		kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	return fmt.Sprintf("%s > %s, %s%s, %d bytes", mac(src), mac(dst), tags.String(), payload(kind, rest), length)
}

func mac(b []byte) string {
	if string(b) == "\xff\xff\xff\xff\xff\xff" {
		return "broadcast"
	}
	return net.HardwareAddr(b).String()
}

func payload(kind uint16, b []byte) string {
	switch {
	case kind == typeIPv4:
		return ipv4(b)
	case kind == typeIPv6:
		return ipv6(b)
	case kind == typeARP, kind == typeRARP:
		return arp(kind, b)
	case kind == typeLLDP:
		return "LLDP"
	case kind == typeSlow && len(b) > 0 && b[0] == 1:
		return "LACP"
	case kind < leastType && len(b) >= 3 && b[0] == 0x42 && b[1] == 0x42:
		return "STP"
	case kind < leastType:
		return "802.3"
	}
	return fmt.Sprintf("type 0x%04x", kind)
}

func arp(kind uint16, b []byte) string {
	name := "ARP"
	if kind == typeRARP {
		name = "RARP"
	}
	if len(b) < 28 || binary.BigEndian.Uint16(b[2:]) != typeIPv4 {
		return name
	}
	from, target := netip.AddrFrom4([4]byte(b[14:18])), netip.AddrFrom4([4]byte(b[24:28]))
	switch op := binary.BigEndian.Uint16(b[6:]); op {
	case 1:
		return fmt.Sprintf("%s who has %s, tell %s", name, target, from)
	case 2:
		return fmt.Sprintf("%s %s is at %s", name, from, mac(b[8:14]))
	default:
		return fmt.Sprintf("%s operation %d", name, op)
	}
}

func ipv4(b []byte) string {
	if len(b) < 20 || b[0]>>4 != 4 {
		return "IPv4, cut off"
	}
	head := int(b[0]&15) * 4
	src, dst := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	if off := binary.BigEndian.Uint16(b[6:]) & 0x1fff; off > 0 {
		return fmt.Sprintf("IPv4 %s > %s: fragment at %d", src, dst, int(off)*8)
	}
	if head < 20 || head > len(b) {
		return fmt.Sprintf("IPv4 %s > %s", src, dst)
	}
	total := int(binary.BigEndian.Uint16(b[2:])) - head
	return "IPv4 " + transport(b[9], src, dst, b[head:], total)
}

// maxExtensions is how many IPv6 extension headers the switch, and so this package, reads.
const maxExtensions = 8

// ipv6 follows the extension headers that the switch's reader follows (docs/reference/frame-rules.md, "The packet"), so
// that it shows a frame as guards and teams see it.
func ipv6(b []byte) string {
	if len(b) < 40 || b[0]>>4 != 6 {
		return "IPv6, cut off"
	}
	src, dst := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	next, left, rest := b[6], int(binary.BigEndian.Uint16(b[4:])), b[40:]
	if left > 0 && left < len(rest) {
		rest = rest[:left] // padding follows
	}
	for range maxExtensions {
		n := extension(next, rest)
		if n == 0 {
			break
		}
		if next == 44 && binary.BigEndian.Uint16(rest[2:])>>3 > 0 {
			return fmt.Sprintf("IPv6 %s > %s: fragment at %d", src, dst, binary.BigEndian.Uint16(rest[2:])&^7)
		}
		next, rest, left = rest[0], rest[min(n, len(rest)):], left-n
	}
	return "IPv6 " + transport(next, src, dst, rest, left)
}

// extension is the length of the IPv6 extension header with that number at the start of b; 0 when it is none, or is cut
// off.
func extension(number byte, b []byte) int {
	if len(b) < 8 {
		return 0
	}
	switch number {
	case 0, 43, 60, 135, 139, 140: // hop-by-hop, routing, destination options, mobility, HIP, shim6
		return 8 + int(b[1])*8
	case 44: // fragment
		return 8
	case 51: // authentication
		return 8 + int(b[1])*4
	}
	return 0
}

// transport describes what IP carries: b are its captured bytes, n is its whole length.
func transport(protocol byte, src, dst netip.Addr, b []byte, n int) string {
	plain := fmt.Sprintf("%s > %s: ", src, dst)
	ports := func() string {
		return fmt.Sprintf("%s > %s: ", netip.AddrPortFrom(src, binary.BigEndian.Uint16(b)),
			netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:])))
	}
	switch {
	case protocol == 6 && len(b) >= 20:
		return ports() + tcp(b, n)
	case protocol == 17 && len(b) >= 8:
		return ports() + fmt.Sprintf("UDP, length %d", max(n-8, 0))
	case protocol == 132 && len(b) >= 12:
		return ports() + "SCTP"
	case protocol == 1 && len(b) >= 2:
		return plain + "ICMP " + echo(b, 8, 0)
	case protocol == 58 && len(b) >= 2:
		return plain + "ICMPv6 " + icmp6(b)
	case protocol == 2:
		return plain + "IGMP"
	}
	return plain + fmt.Sprintf("protocol %d", protocol)
}

func tcp(b []byte, n int) string {
	var flags strings.Builder
	for i, letter := range "FSRP.UEW" { // from the lowest bit
		if b[13]>>i&1 == 1 {
			flags.WriteRune(letter)
		}
	}
	s := fmt.Sprintf("TCP [%s], seq %d", flags.String(), binary.BigEndian.Uint32(b[4:]))
	if b[13]&0x10 != 0 {
		s += fmt.Sprintf(", ack %d", binary.BigEndian.Uint32(b[8:]))
	}
	return s + fmt.Sprintf(", length %d", max(n-int(b[12]>>4)*4, 0))
}

func echo(b []byte, request, reply byte) string {
	what := fmt.Sprintf("type %d, code %d", b[0], b[1])
	switch b[0] {
	case request:
		what = "echo request"
	case reply:
		what = "echo reply"
	}
	if (b[0] == request || b[0] == reply) && len(b) >= 8 {
		what += fmt.Sprintf(", id %d, seq %d", binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:]))
	}
	return what
}

func icmp6(b []byte) string {
	target := ""
	if len(b) >= 24 {
		target = netip.AddrFrom16([16]byte(b[8:24])).String()
	}
	switch {
	case b[0] == 133:
		return "router solicitation"
	case b[0] == 134:
		return "router advertisement"
	case b[0] == 135 && target != "":
		return "neighbour solicitation, who has " + target
	case b[0] == 136 && target != "":
		return "neighbour advertisement, target " + target
	}
	return echo(b, 128, 129)
}
