package kerneltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// onePacket has a port for each way that a frame's packet matters: a team that hashes addresses, a LAG, and flows.
const onePacket = `
  kind: distributed
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}, {name: u3, device: dev3}]
  defaults: {vlan: {trunk: ["0-4094"]}, security: {forgedTransmits: accept}}
  portGroups:
  - {name: hash, teaming: {policy: ip-hash}}
`

// addresses are the words and the last bytes of a packet's addresses, as a LAG and a team hash them.
type addresses struct {
	words []uint32
	xor   int
}

var (
	pair4 = addresses{[]uint32{0x0a000001, 0x0a000002}, 1 ^ 2}
	pair6 = addresses{[]uint32{0xfd000000, 0, 0, 1, 0xfd000000, 0, 0, 6}, 1 ^ 6}
)

// hashedPorts are the ports of the packets, as a LAG hashes them.
const hashedPorts = 0x9c4601bb

// notIP is how a frame from vm1 to ext1 is hashed that is not IP.
func notIP(byte29, byte33 int) addresses {
	return addresses{[]uint32{0x0e000000, 0x00010200, 0x00000001}, byte29 ^ byte33}
}

// readPackets are frames that teams, LAGs and flows once read each in a way of its own.
func readPackets() []packetRow {
	const (
		ip4     = "0a0000010a000002"
		ip6     = "fd000000000000000000000000000001 fd000000000000000000000000000006"
		from4   = "10.0.0.1.%d>10.0.0.2.%d"
		from6   = "fd00::1.%d>fd00::6.%d"
		noneOf4 = "0 0.0.0.0.0>0.0.0.0.0"
		ports   = hashedPorts
		l4      = " 9c4601bb 0000000000000000 50020000 [8]"
	)
	with4 := func(protocol string) string { return protocol + fmt.Sprintf(from4, 40006, 443) }
	with6 := func(protocol string) string { return protocol + fmt.Sprintf(from6, 40006, 443) }
	none4 := func(protocol string) string { return protocol + fmt.Sprintf(from4, 0, 0) }
	none6 := func(protocol string) string { return protocol + fmt.Sprintf(from6, 0, 0) }
	chain := func(n int) string { // destination options, so many of them, before TCP
		return "86dd 60000000" + fmt.Sprintf("%04x", 8*n+24) + "3c40 " + ip6 + strings.Repeat(" 3c00010400000000",
			n-1) + " 0600010400000000" + l4
	}
	return []packetRow{
		{"IPv4", "0800 4500002c0000000040060000" + ip4 + l4, pair4, ports, with4("6 ")},
		{"IPv6", "86dd 6000000000180640 " + ip6 + l4, pair6, ports, with6("6 ")},
		{"extension headers", "86dd 6000000000280040 " + ip6 + " 3c00010400000000 0600010400000000" + l4, pair6, ports,
			with6("6 ")},
		{"an authentication header", "86dd 6000000000283340 " + ip6 + " 06020000 00000001 00000001 00000000" + l4,
			pair6, ports, with6("6 ")},
		{"eight extension headers", chain(8), pair6, ports, with6("6 ")},
		{"nine extension headers", chain(9), pair6, 0, none6("60 ")},
		{"an extension header that leads out", "86dd 6000000000203c40 " + ip6 + " 0609010400000000" + l4, pair6, 0,
			none6("6 ")},
		{"first fragment of IPv4", "0800 4500002c0000200040060000" + ip4 + l4, pair4, 0, with4("6 ")},
		{"later fragment of IPv4", "0800 4500002c0000000140060000" + ip4 + l4, pair4, 0, none4("6 ")},
		{"first fragment of IPv6", "86dd 6000000000202c40 " + ip6 + " 0600000100000007" + l4, pair6, 0, with6("6 ")},
		{"later fragment of IPv6", "86dd 6000000000202c40 " + ip6 + " 0600000900000007" + l4, pair6, 0, none6("6 ")},
		{"a fragment header of a whole datagram", "86dd 6000000000202c40 " + ip6 + " 0600000000000007" + l4, pair6,
			ports, with6("6 ")},
		{"options of IPv4", "0800 460000300000000040060000" + ip4 + " 01010101" + l4, pair4, ports, with4("6 ")},
		{"UDP-Lite", "0800 4500002c0000000040880000" + ip4 + l4, pair4, ports, with4("136 ")},
		{"DCCP", "0800 4500002c0000000040210000" + ip4 + l4, pair4, ports, with4("33 ")},
		{"ICMP", "0800 4500002c0000000040010000" + ip4 + " 0803 [22]", pair4, 0, "1 " + fmt.Sprintf(from4, 0, 0x0803)},
		{"ports in the padding", "0800 450000140000000040060000" + ip4 + l4, pair4, 0, none4("6 ")},
		{"ports of IPv6 in the padding", "86dd 6000000000083c40 " + ip6 + " 0600010400000000" + l4, pair6, 0,
			none6("6 ")},
		{"IPv6 in a frame of IPv4", "0800 6500002c0000000040060000" + ip4 + l4, notIP(1, 2), 0, noneOf4},
		{"IPv4 in a frame of IPv6", "86dd 4000000000180640 " + ip6 + l4, notIP(0, 0), 0, "0 ::.0>::.0"},
		{"a header of four words", "0800 4400002c0000000040060000" + ip4 + l4, notIP(1, 2), 0, noneOf4},
		{"a header longer than the frame", "0800 4f00002c0000000040060000" + ip4 + l4, notIP(1, 2), 0, noneOf4},
		{"a second tag", "q5 ad7 0800 4500002c0000000040060000" + ip4 + l4, pair4, ports, with4("6 ")},
		{"a third tag", "q5 ad7 q8 0800 4500002c0000000040060000" + ip4 + l4, notIP(0x06, 0x0a), 0, "type 8100"},
	}
}

type packetRow struct {
	what, frame string
	addresses   addresses
	ports       uint32 // that a LAG hashes, 0 for none
	flow        string // behind the MACs
}

func TestS46_ATeamHashesTheOnePacket(t *testing.T) {
	r := newRig(t, onePacket, "vm1 hash")
	for _, c := range readPackets() {
		t.Run(c.what, func(t *testing.T) {
			defer func(whole *testing.T) { r.t = whole }(r.t)
			r.t = t
			r.send("vm1", "ext1 vm1 "+c.frame, to(fmt.Sprint("u", 1+c.addresses.xor%3)))
		})
	}
}

func TestS52_ALAGHashesTheOnePacket(t *testing.T) {
	for _, a := range []addresses{pair4, pair6} { // else the rows say nothing
		if member(lagMembers, a.words...) == member(lagMembers, slices.Concat(a.words, []uint32{hashedPorts})...) {
			t.Fatal("the member is the same with ports and without them: take other ports")
		}
	}
	r := newRig(t, fmt.Sprintf(lagged, "ip-port"), "vm1 web")
	for _, c := range readPackets() {
		t.Run(c.what, func(t *testing.T) {
			words := slices.Clone(c.addresses.words)
			if c.ports != 0 {
				words = append(words, c.ports)
			}
			defer func(whole *testing.T) { r.t = whole }(r.t)
			r.t = t
			r.send("vm1", "ext1 vm1 "+c.frame, to(member(lagMembers, words...)))
		})
	}
}

func TestD6_AFlowIsToldByTheOnePacket(t *testing.T) {
	r := newMeterRig(t, strings.Replace(metered, `["0", "5-9"]`, `["0-4094"]`, 1), "vm1 t")
	for _, c := range readPackets() {
		t.Run(c.what, func(t *testing.T) {
			defer func(whole *testing.T) { r.t = whole }(r.t)
			r.t = t
			r.frame("vm1", wire("ext1 vm1 "+c.frame))
			if got := slices.Collect(maps.Keys(r.drained())); len(got) != 1 ||
				!strings.HasSuffix(got[0], " 01>0e:00:00:00:00:01 "+c.flow) {
				t.Errorf("the flow is %q, want %q", got, c.flow)
			}
		})
	}
}
