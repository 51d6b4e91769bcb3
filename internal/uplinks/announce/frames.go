package announce

import (
	"encoding/binary"

	"heddle/internal/plan"
)

// Tag is the VLAN tag of a frame; VID 0 is none.
type Tag struct {
	VID uint16 // 0–4094
	AD  bool   // 802.1ad
}

// Numbers of the protocols.
const (
	typeRARP = 0x8035
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	typeQ    = 0x8100
	typeAD   = 0x88a8

	protocolIGMP   = 2
	protocolICMPv6 = 58
	routerAlert    = 0x94 // IPv4 option 20, copied (RFC 2113)
	mldQuery       = 130  // RFC 3810 §5.1
	igmpQuery      = 0x11 // RFC 3376 §4.1

	// The time in which receivers must answer: 1 s, in tenths of a second for IGMP and in ms for MLD.
	igmpWithin, mldWithin = 10, 1000
	robustness, interval  = 2, 125 // the protocols' defaults
)

// shortest is the shortest frame on the wire, in bytes without the checksum.
const shortest = 60

// begin returns the Ethernet header of a frame, with its tag.
func begin(dst, src plan.MAC, tag Tag, etherType uint16) []byte {
	b := append(append(make([]byte, 0, 128), dst[:]...), src[:]...)
	if tag.VID != 0 {
		tpid := uint16(typeQ)
		if tag.AD {
			tpid = typeAD
		}
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, tpid), tag.VID)
	}
	return binary.BigEndian.AppendUint16(b, etherType)
}

// padded pads a frame to the shortest length. A tagged frame is padded to four bytes more, so that it stays long enough
// when a switch removes the tag.
func padded(b []byte, tag Tag) []byte {
	want := shortest
	if tag.VID != 0 {
		want += 4
	}
	return append(b, make([]byte, max(0, want-len(b)))...)
}

// RARP returns a broadcast from the MAC that asks for the protocol address of the MAC (RFC 903, "reverse request"):
// every switch on the way learns where the MAC is, and nobody answers.
func RARP(mac plan.MAC, tag Tag) []byte {
	b := begin(plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, tag, typeRARP)
	b = append(b, 0, 1, typeIPv4>>8, typeIPv4&0xff, 6, 4, 0, 3) // Ethernet, IPv4, reverse request
	b = append(append(b, mac[:]...), 0, 0, 0, 0)
	b = append(append(b, mac[:]...), 0, 0, 0, 0)
	return padded(b, tag)
}

// IGMPQuery returns a frame that asks every receiver for its IPv4 multicast groups: an IGMPv3 general query (RFC 3376
// §4.1) from 0.0.0.0, which takes part in no querier election. Receivers that know only IGMPv2 read its first 8 bytes
// (RFC 2236 §2.5); an IGMPv2 query would make all others fall back to that version.
func IGMPQuery(src plan.MAC, tag Tag) []byte {
	igmp := []byte{igmpQuery, igmpWithin, 0, 0, 0, 0, 0, 0, robustness, interval, 0, 0}
	binary.BigEndian.PutUint16(igmp[2:], checksum(igmp))
	ip := []byte{
		0x46, 0xc0, 0, byte(24 + len(igmp)), 0, 0, 0, 0, 1, protocolIGMP, 0, 0, // DSCP CS6, TTL 1
		0, 0, 0, 0, 224, 0, 0, 1, routerAlert, 4, 0, 0,
	}
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	b := begin(plan.MAC{1, 0, 0x5e, 0, 0, 1}, src, tag, typeIPv4)
	return padded(append(append(b, ip...), igmp...), tag)
}

// MLDQuery returns a frame that asks every receiver for its IPv6 multicast groups: an MLDv2 general query (RFC 3810
// §5.1). It must come from a link-local address; the highest one loses every querier election (§7.6.2).
func MLDQuery(src plan.MAC, tag Tag) []byte {
	from := [16]byte{0xfe, 0x80, 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}
	to := [16]byte{0xff, 2, 15: 1}
	icmp := make([]byte, 28)
	icmp[0] = mldQuery
	binary.BigEndian.PutUint16(icmp[4:], mldWithin)
	icmp[24], icmp[25] = robustness, interval
	pseudo := append(append(append([]byte{}, from[:]...), to[:]...), 0, 0, 0, byte(len(icmp)), 0, 0, 0, protocolICMPv6)
	binary.BigEndian.PutUint16(icmp[2:], checksum(append(pseudo, icmp...)))
	hop := []byte{protocolICMPv6, 0, 5, 2, 0, 0, 1, 0} // hop-by-hop: router alert for MLD (RFC 2711)
	ip := append([]byte{0x60, 0, 0, 0, 0, byte(len(hop) + len(icmp)), 0, 1}, from[:]...)
	b := begin(plan.MAC{0x33, 0x33, 0, 0, 0, 1}, src, tag, typeIPv6)
	b = append(append(b, ip...), to[:]...)
	return padded(append(append(b, hop...), icmp...), tag)
}

// checksum returns the Internet checksum (RFC 1071) of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
