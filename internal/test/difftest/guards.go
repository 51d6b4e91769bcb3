package difftest

import (
	"encoding/binary"
	"net/netip"

	"heddle/internal/spec"
)

// Two of three hosts guard no port; the others draw which ports are guarded, and what their owners claim, from a source
// of their own, so that a seed still gives the same frames.

// guard rolls the guards of port groups and the addresses of ports.
func (g *generator) guard() {
	answer := func() spec.Answer {
		return [...]spec.Answer{"", spec.Accept, spec.Reject, spec.Reject}[g.guards.IntN(4)]
	}
	for i := range g.state.Config.Switches {
		for j := range g.state.Config.Switches[i].PortGroups {
			sec := &g.state.Config.Switches[i].PortGroups[j].Security
			on := g.guards.IntN(3) > 0
			sec.AddressGuard.Enabled, sec.DHCPServer, sec.RouterAdvertisements = &on, answer(), answer()
		}
	}
	for i := range g.state.Config.Ports {
		list := []string{}
		for _, text := range claims {
			if g.guards.IntN(3) == 0 {
				list = append(list, text)
			}
		}
		g.state.Config.Ports[i].Security.AddressGuard.Addresses = &list
	}
}

// claims are what ports may be listed with; addresses that frames name are near them.
var claims = []string{"192.0.2.1", "192.0.2.2", "192.0.2.0/30", "198.51.100.64/26", "0.0.0.0/0", "2001:db8::1",
	"2001:db8::2", "2001:db8::/127", "2001:db8:1::/64", "::/0", "fe80::1"}

// address is one that a guest may name: of 4 bytes or of 16.
func (g *generator) address(m *Member, six bool) []byte {
	list := []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.63", "198.51.100.64",
		"0.0.0.0", "224.0.0.22", "255.255.255.255"}
	if six {
		list = []string{"2001:db8::1", "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:1::9", "2001:db8:2::9",
			"::", "::", "fe80::1", "ff02::16", "ff02::1", "::ffff:192.0.2.1"}
		if g.guards.IntN(4) == 0 {
			mac := g.configured(m.ID)
			if g.guards.IntN(3) == 0 {
				mac = m.SeenMAC
			}
			return []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}
		}
	}
	return netip.MustParseAddr(list[g.guards.IntN(len(list))]).AsSlice()
}

// claim is type and payload of a frame that says who its sender is.
func (g *generator) claim(m *Member) []byte {
	roll := g.guards.IntN
	oneOf := func(list ...byte) byte { return list[roll(len(list))] }
	put := func(kind uint16, b []byte) []byte {
		if roll(12) == 0 {
			b = b[:roll(len(b)+1)]
		}
		if roll(15) == 0 { // in an LLC header
			header := []byte{0xaa, 0xaa, 3, 0, 0, oneOf(0, 0xf8, 0x0c)}
			return append(append(binary.BigEndian.AppendUint16(nil, uint16(len(b)+8)), header...),
				append(binary.BigEndian.AppendUint16(nil, kind), b...)...)
		}
		return append(binary.BigEndian.AppendUint16(nil, kind), b...)
	}
	switch roll(5) {
	case 0:
		b := []byte{0, 1, 8, 0, 6, 4, 0, oneOf(1, 1, 2, 3), 2, 0, 0, 0, 0, 1}
		if roll(8) == 0 {
			b[roll(6)] ^= 1
		}
		return put(0x0806, append(append(append(b, g.address(m, false)...), make([]byte, 6)...),
			g.address(m, false)...))
	case 1, 2:
		part := [...]uint16{0, 0, 0, 0x4000, 0x2000, 1, 0x2008}[roll(7)]
		body := g.transport(oneOf(67, 67, 68, 68, 69))
		b := []byte{oneOf(0x45, 0x45, 0x45, 0x45, 0x44, 0x46, 0x65), 0, 0, byte(20 + len(body) - roll(2)*roll(9)), 0, 1,
			byte(part >> 8), byte(part), 64, oneOf(17, 17, 17, 2, 6, 1), 0, 0}
		return put(0x0800, append(append(append(b, g.address(m, false)...), g.address(m, false)...), body...))
	}
	next, headers := oneOf(58, 58, 58, 17, 6), []byte(nil)
	body := g.transport(oneOf(2, 34, 35))
	if next == 58 {
		body = append([]byte{oneOf(128, 130, 131, 132, 133, 134, 135, 135, 136, 136, 136, 137, 143, 0), 0, 0, 0, 0, 0,
			0, 0}, g.address(m, true)...)
	}
	n := [...]int{0, 0, 0, 1, 2, 8, 9}[roll(7)]
	for range n {
		number := oneOf(0, 60, 60, 44, 43)
		h := []byte{next, 0, 0, 0, 0, 0, 0, 0}
		if number == 44 {
			h[3] = oneOf(0, 0, 1, 8)
		}
		next, headers = number, append(h, headers...)
	}
	payload := append(headers, body...)
	b := []byte{oneOf(0x60, 0x60, 0x60, 0x60, 0x40), 0, 0, 0, 0, byte(len(payload) - roll(2)*roll(9)), next, 255}
	return put(0x86dd, append(append(append(b, g.address(m, true)...), g.address(m, true)...), payload...))
}

// transport is a UDP header to a port: of DHCP in IPv4, and 512 more of DHCPv6.
func (g *generator) transport(low byte) []byte {
	high := byte(0)
	if low < 64 {
		high = 2
	}
	return []byte{4, 0, high, low, 0, 8, 0, 0}[:8-4*(g.guards.IntN(10)/9)-g.guards.IntN(10)/9]
}
