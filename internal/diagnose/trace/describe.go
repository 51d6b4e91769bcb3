package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"heddle/internal/plan"
)

// Describe describes a frame's headers in words: "02:… → 02:…, VLAN 10, IPv4 192.0.2.1 → 192.0.2.2, TCP to port 80". It
// stops where the frame ends.
func Describe(f []byte) string {
	if len(f) < 14 {
		return fmt.Sprintf("%d bytes, too few for an Ethernet header", len(f))
	}
	parts := []string{fmt.Sprintf("%s → %s", plan.MAC(f[6:12]), destination(plan.MAC(f[:6])))}
	tags, kind, rest := split(f)
	parts = append(parts, tags...)
	switch kind {
	case typeARP:
		parts = append(parts, describeARP(rest))
	case typeIPv4:
		parts = append(parts, describeIPv4(rest)...)
	case typeIPv6:
		parts = append(parts, describeIPv6(rest)...)
	default:
		parts = append(parts, fmt.Sprintf("type %#04x", kind))
	}
	return strings.Join(parts, ", ")
}

func destination(m plan.MAC) string {
	switch {
	case m.IsBroadcast():
		return "everybody"
	case m.IsGroup():
		return m.String() + " (multicast)"
	}
	return m.String()
}

// split separates the tags from a frame of at least 14 bytes. It returns at most two tags in words, the EtherType after
// them, and the rest.
func split(f []byte) (tags []string, kind uint16, rest []byte) {
	kind, rest = binary.BigEndian.Uint16(f[12:]), f[14:]
	for len(tags) < 2 && (kind == typeQ || kind == typeAD) && len(rest) >= 4 {
		tags = append(tags, tagWords(kind, binary.BigEndian.Uint16(rest)))
		kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	return tags, kind, rest
}

// tagWords returns a tag in words, with its priority unless that is 0.
func tagWords(protocol, tci uint16) string {
	text := fmt.Sprintf("VLAN %d", tci&0xfff)
	switch {
	case protocol == typeAD:
		text = "802.1ad " + text
	case tci&0xfff == 0:
		text = "priority tag"
	}
	if p := tci >> 13; p != 0 {
		text += fmt.Sprintf(" priority %d", p)
	}
	return text
}

// outerTag returns the outermost tag of a frame in words, "untagged" without one.
func outerTag(f []byte) string {
	if len(f) < 14 {
		return "untagged"
	}
	if tags, _, _ := split(f); len(tags) > 0 {
		return tags[0]
	}
	return "untagged"
}

func describeARP(b []byte) string {
	if len(b) < 28 || b[0] != 0 || b[1] != 1 || b[4] != 6 || b[5] != 4 {
		return "ARP"
	}
	src, dst := netip.AddrFrom4([4]byte(b[14:])), netip.AddrFrom4([4]byte(b[24:]))
	switch binary.BigEndian.Uint16(b[6:]) {
	case 1:
		return fmt.Sprintf("ARP: who has %s? tell %s", dst, src)
	case 2:
		return fmt.Sprintf("ARP: %s is at %s", src, plan.MAC(b[8:14]))
	}
	return "ARP"
}

func describeIPv4(b []byte) []string {
	if len(b) < 20 {
		return []string{"IPv4, cut short"}
	}
	parts := []string{fmt.Sprintf("IPv4 %s → %s", netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])))}
	head := 4 * int(b[0]&15)
	if offset := binary.BigEndian.Uint16(b[6:]) & 0x1fff; offset != 0 {
		return append(parts, fmt.Sprintf("fragment at byte %d", 8*int(offset)))
	}
	if head < 20 || head > len(b) {
		return parts
	}
	return append(parts, describeTransport(b[9], b[head:]))
}

func describeIPv6(b []byte) []string {
	if len(b) < 40 {
		return []string{"IPv6, cut short"}
	}
	return []string{fmt.Sprintf("IPv6 %s → %s", netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))),
		describeTransport(b[6], b[40:])}
}

func describeTransport(protocol byte, b []byte) string {
	name := map[byte]string{protoTCP: "TCP", protoUDP: "UDP"}[protocol]
	switch {
	case name != "" && len(b) >= 4:
		return fmt.Sprintf("%s %d → %d", name, binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]))
	case name != "":
		return name
	case protocol == protoICMP && len(b) > 0 && b[0] == 8, protocol == protoICMPv6 && len(b) > 0 && b[0] == 128:
		return "ping"
	case protocol == protoICMPv6 && len(b) > 0 && b[0] == 135:
		return "neighbour solicitation"
	case protocol == protoICMP:
		return "ICMP"
	case protocol == protoICMPv6:
		return "ICMPv6"
	}
	return fmt.Sprintf("protocol %d", protocol)
}
