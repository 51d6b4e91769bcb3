package attack

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"heddle/internal/lab/traffic"
	"heddle/internal/plan"
)

// The addresses of the victims, and the one that a guest which poses as them may use.
var (
	clientEnd  = end{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), plan.MAC{2, 0, 0, 0, 1, 1}}
	serverEnd  = end{netip.MustParseAddr(serverAddress), netip.MustParseAddr("2001:db8::2"), plan.MAC{2, 0, 0, 0, 2, 1}}
	ownAddress = netip.MustParseAddr("192.0.2.66")
)

// end is a victim's addresses.
type end struct {
	v4, v6 netip.Addr
	mac    plan.MAC
}

// spoofRows are guests in the victims' VLAN that pose as them: with guards, and without.
func spoofRows() []row {
	list := []row{{name: "spoofing", spoofs: guarded}, {name: "spoofing-open", spoofs: unguarded, open: true}}
	for i := range list {
		r := &list[i]
		frames := map[string][][]byte{r.spoofs: impostures(attackers()[r.spoofs])}
		r.frames = func(int, int) map[string][][]byte { return frames }
	}
	return list
}

// impostures are the frames of such a guest in a turn, each from its own MAC: packets and announcements in the name of
// each victim, and, from its own addresses, a DHCP server's offer and a router advertisement.
func impostures(from plan.MAC) (list [][]byte) {
	everybody, nodes := plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, plan.MAC{0x33, 0x33, 0, 0, 0, 1}
	for _, v := range []struct{ posesAs, to end }{{serverEnd, clientEnd}, {clientEnd, serverEnd}} {
		list = append(list,
			ethernet(v.to.mac, from, 0x0800, ipv4(v.posesAs.v4, v.to.v4, datagram(9, 9))),
			ethernet(v.to.mac, from, 0x86dd, ipv6(v.posesAs.v6, v.to.v6, protocolUDP, datagram(9, 9))),
			ethernet(v.to.mac, from, 0x0806, arpReply(from, v.posesAs.v4, v.to.mac, v.to.v4)),
			ethernet(everybody, from, 0x0806, arpReply(from, v.posesAs.v4, from, v.posesAs.v4)),
			ethernet(nodes, from, 0x86dd, ipv6(linkLocal(from), allNodes, protocolICMPv6,
				advertisement(from, v.posesAs.v6))))
	}
	return append(list,
		ethernet(everybody, from, 0x0800, ipv4(ownAddress, netip.MustParseAddr("255.255.255.255"), datagram(67, 68))),
		ethernet(nodes, from, 0x86dd, ipv6(linkLocal(from), allNodes, protocolICMPv6, routerAdvertisement())))
}

const protocolUDP, protocolICMPv6 = 17, 58

var allNodes = netip.MustParseAddr("ff02::1")

func ethernet(to, from plan.MAC, kind uint16, payload []byte) []byte {
	f := binary.BigEndian.AppendUint16(slices.Concat(to[:], from[:]), kind)
	return slices.Concat(f, payload, make([]byte, max(0, 60-len(f)-len(payload))))
}

func ipv4(src, dst netip.Addr, payload []byte) []byte {
	b := []byte{0x45, 0, 0, byte(20 + len(payload)), 0, 0, 0, 0, 64, protocolUDP, 0, 0}
	b = slices.Concat(b, src.AsSlice(), dst.AsSlice())
	binary.BigEndian.PutUint16(b[10:], traffic.Checksum(b))
	return append(b, payload...)
}

// ipv6 is a packet whose payload gets its checksum: over a pseudo header, too (RFC 8200, section 8.1).
func ipv6(src, dst netip.Addr, next byte, payload []byte) []byte {
	at := map[byte]int{protocolUDP: 6, protocolICMPv6: 2}[next]
	ends := slices.Concat(src.AsSlice(), dst.AsSlice())
	sum := traffic.Checksum(slices.Concat(ends, []byte{0, 0, 0, byte(len(payload)), 0, 0, 0, next}, payload))
	binary.BigEndian.PutUint16(payload[at:], sum)
	return slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(payload)), next, 255}, ends, payload)
}

// datagram is UDP without a checksum and with 8 bytes.
func datagram(from, to uint16) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	return append(b, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

func arpReply(from plan.MAC, sender netip.Addr, to plan.MAC, target netip.Addr) []byte {
	return slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 2}, from[:], sender.AsSlice(), to[:], target.AsSlice())
}

// advertisement is an unsolicited neighbour advertisement that overrides existing entries (RFC 4861, section 4.4).
func advertisement(from plan.MAC, target netip.Addr) []byte {
	return slices.Concat([]byte{136, 0, 0, 0, 0x20, 0, 0, 0}, target.AsSlice(), []byte{2, 1}, from[:])
}

// routerAdvertisement is of a router for 30 minutes (RFC 4861, section 4.2).
func routerAdvertisement() []byte {
	return []byte{134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0}
}

// linkLocal is the link-local address that a MAC gives (RFC 4291, appendix A).
func linkLocal(m plan.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3],
		14: m[4], 15: m[5]})
}
