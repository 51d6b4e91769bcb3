package kerneltest

import (
	"net"
	"strconv"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// metered is a switch whose group m is metered in both directions.
const metered = `
  uplinks: [{name: u1, device: dev1, monitoring: {ipfix: false}}]
  defaults: {vlan: {access: 5}, security: {forgedTransmits: accept}}
  portGroups:
  - {name: m, monitoring: {ipfix: true}}
  - {name: t, vlan: {trunk: ["0", "5-9"]}, monitoring: {ipfix: true}}
  - {name: plain}
`

func ip4(protocol layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: protocol, SrcIP: net.IP{10, 0, 0, 1},
		DstIP: net.IP{10, 0, 0, 2}}
}

func ip6(next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: next, SrcIP: net.ParseIP("2001:db8::1"),
		DstIP: net.ParseIP("2001:db8::2")}
}

func payload(n int) gopacket.Payload { return make([]byte, n) }

// raw is bytes behind a header.
func raw(b ...byte) gopacket.Payload { return b }

func udp(n int) []gopacket.SerializableLayer {
	return []gopacket.SerializableLayer{&layers.UDP{SrcPort: 1000, DstPort: 53}, payload(n)}
}

const (
	v4 = layers.EthernetTypeIPv4
	v6 = layers.EthernetTypeIPv6
)

func TestD6_AFrameIsMeteredWhereItCameFromAndWhereItGoes(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 m")
	f := packet(t, v4, append([]gopacket.SerializableLayer{ip4(layers.IPProtocolUDP)}, udp(100)...)...)
	r.frame("vm1", f)
	r.frame("vm1", f)
	const in, out = "in vm1 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53", "out vm2 vlan 5 01>02 17 " +
		"10.0.0.1.1000>10.0.0.2.53"
	r.expect(map[string]string{
		in:  "2 packets 256/284 bytes vm1>vm2 ttl 64-64 t 1-2",
		out: "2 packets 256/284 bytes vm1>vm2 ttl 64-64 t 1-2",
	})
	r.expect(nil)
	r.frame("vm1", f)
	r.change("{name: m, monitoring: {ipfix: true}}", "{name: m, monitoring: {ipfix: true, observe: egress}}")
	r.frame("vm1", f)
	r.expect(map[string]string{
		in:  "1 packets 128/142 bytes vm1>vm2 ttl 64-64 t 3-3",
		out: "2 packets 256/284 bytes vm1>vm2 ttl 64-64 t 3-4",
	})
	r.change("observe: egress", "observe: ingress")
	r.frame("vm1", f)
	r.expect(map[string]string{in: "1 packets 128/142 bytes vm1>vm2 ttl 64-64 t 5-5"})
	r.change("ipfix: true, observe: ingress", "ipfix: false")
	r.frame("vm1", f)
	r.expect(nil)
}

func TestS63_MonitoringOfAnExitPortRecordsWhatGoesToIt(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 plain", "vm2 m")
	r.change("{name: m, monitoring: {ipfix: true}}", "{name: m, monitoring: {ipfix: true, observe: egress}}")
	there := packet(t, v4, append([]gopacket.SerializableLayer{ip4(layers.IPProtocolUDP)}, udp(100)...)...)
	back := append(append([]byte{}, word("vm1")...), append(word("vm2"), there[12:]...)...)
	r.frame("vm1", there)
	r.frame("vm2", back)
	r.expect(map[string]string{"out vm2 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53": "1 packets 128/142 bytes vm1>vm2 " +
		"ttl 64-64 t 1-1"})
}

// told is a frame and what its flow says: after the MACs, and after the packets.
type told struct {
	what         string
	frame        []byte
	flow, counts string
}

func toldFrames(t *testing.T) []told {
	frag := func(flags layers.IPv4Flag, offset uint16) *layers.IPv4 {
		ip := ip4(layers.IPProtocolUDP)
		ip.Flags, ip.FragOffset = flags, offset
		return ip
	}
	options := ip4(layers.IPProtocolTCP)
	options.Options = []layers.IPv4Option{{OptionType: 7, OptionLength: 7, OptionData: make([]byte, 5)}}
	options.TOS, options.TTL = 0xb9, 3
	class := ip6(layers.IPProtocolTCP)
	class.TrafficClass, class.HopLimit = 0xb9, 255
	jumbo := ip6(layers.IPProtocolUDP)
	tcp := func(flags uint16) *layers.TCP {
		return &layers.TCP{SrcPort: 40000, DstPort: 443, DataOffset: 5, FIN: flags&1 != 0, SYN: flags&2 != 0,
			ACK: flags&16 != 0, ECE: flags&64 != 0, CWR: flags&128 != 0, NS: flags&256 != 0}
	}
	return []told{
		{"UDP", packet(t, v4, append([]gopacket.SerializableLayer{ip4(17)}, udp(10)...)...),
			"17 10.0.0.1.1000>10.0.0.2.53", "38/60 bytes vm1>vm2 ttl 64-64"},
		{"TCP", packet(t, v4, ip4(6), tcp(2|64|128|256), payload(9)), "6 10.0.0.1.40000>10.0.0.2.443",
			"49/63 bytes vm1>vm2 flags 1c2 ttl 64-64"},
		{"TCP behind options", packet(t, v4, options, tcp(16), payload(9)), "6 10.0.0.1.40000>10.0.0.2.443",
			"57/71 bytes vm1>vm2 flags 10 tos b9 ttl 3-3"},
		{"UDP-Lite", packet(t, v4, ip4(136), raw(1, 2, 3, 4, 0, 8, 0, 0)), "136 10.0.0.1.258>10.0.0.2.772",
			"28/60 bytes vm1>vm2 ttl 64-64"},
		{"SCTP", packet(t, v4, ip4(132), raw(1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0)), "132 10.0.0.1.258>10.0.0.2.772",
			"32/60 bytes vm1>vm2 ttl 64-64"},
		{"DCCP", packet(t, v4, ip4(33), raw(1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0)), "33 10.0.0.1.258>10.0.0.2.772",
			"32/60 bytes vm1>vm2 ttl 64-64"},
		{"ICMP", packet(t, v4, ip4(1), raw(8, 3, 0, 0, 0, 0, 0, 0)), "1 10.0.0.1.0>10.0.0.2.2051",
			"28/60 bytes vm1>vm2 ttl 64-64"},
		{"ICMPv6 in IPv4", packet(t, v4, ip4(58), raw(8, 3, 0, 0, 0, 0, 0, 0)), "58 10.0.0.1.0>10.0.0.2.0",
			"28/60 bytes vm1>vm2 ttl 64-64"},
		{"GRE", packet(t, v4, ip4(47), payload(40)), "47 10.0.0.1.0>10.0.0.2.0", "60/74 bytes vm1>vm2 ttl 64-64"},
		{"first fragment", packet(t, v4, append([]gopacket.SerializableLayer{frag(layers.IPv4MoreFragments, 0)},
			udp(100)...)...), "17 10.0.0.1.1000>10.0.0.2.53", "128/142 bytes vm1>vm2 ttl 64-64"},
		{"later fragment", packet(t, v4, frag(0, 5), payload(80)), "17 10.0.0.1.0>10.0.0.2.0",
			"100/114 bytes vm1>vm2 ttl 64-64"},
		{"ports cut short", packet(t, v4, ip4(6), raw(1, 2)), "6 10.0.0.1.0>10.0.0.2.0",
			"22/60 bytes vm1>vm2 ttl 64-64"},
		{"TCP flags cut short", packet(t, v4, ip4(6), raw(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)),
			"6 10.0.0.1.258>10.0.0.2.772", "33/60 bytes vm1>vm2 ttl 64-64"},
		{"UDP over IPv6", packet(t, v6, append([]gopacket.SerializableLayer{ip6(17)}, udp(10)...)...),
			"17 2001:db8::1.1000>2001:db8::2.53", "58/72 bytes vm1>vm2 ttl 64-64"},
		{"TCP over IPv6", packet(t, v6, class, tcp(17), payload(9)), "6 2001:db8::1.40000>2001:db8::2.443",
			"69/83 bytes vm1>vm2 flags 11 tos b9 ttl 255-255"},
		{"ICMPv6", packet(t, v6, ip6(58), raw(135, 1, 0, 0, 0, 0, 0, 0)), "58 2001:db8::1.0>2001:db8::2.34561",
			"48/62 bytes vm1>vm2 ttl 64-64"},
		{"ICMP in IPv6", packet(t, v6, ip6(1), raw(135, 1, 0, 0, 0, 0, 0, 0)), "1 2001:db8::1.0>2001:db8::2.0",
			"48/62 bytes vm1>vm2 ttl 64-64"},
		{"extension headers", packet(t, v6, ip6(0), raw(43, 0, 0, 0, 0, 0, 0, 0), raw(60, 1), payload(14), raw(51, 0),
			payload(6), raw(17, 1), payload(10), raw(1, 2, 3, 4, 0, 8, 0, 0)),
			"17 2001:db8::1.258>2001:db8::2.772", "92/106 bytes vm1>vm2 ttl 64-64"},
		{"first fragment of IPv6", packet(t, v6, ip6(44), raw(17, 0, 0, 1, 0, 0, 0, 9), raw(1, 2, 3, 4, 0, 8, 0, 0)),
			"17 2001:db8::1.258>2001:db8::2.772", "56/70 bytes vm1>vm2 ttl 64-64"},
		{"later fragment of IPv6", packet(t, v6, ip6(44), raw(60, 0, 0, 8, 0, 0, 0, 9), raw(17, 0, 3, 4, 0, 8, 0, 0)),
			"60 2001:db8::1.0>2001:db8::2.0", "56/70 bytes vm1>vm2 ttl 64-64"},
		{"an extension header cut short", packet(t, v6, ip6(0), raw(17, 0, 0)), "0 2001:db8::1.0>2001:db8::2.0",
			"43/60 bytes vm1>vm2 ttl 64-64"},
		{"an extension header that leads out of the packet", packet(t, v6, ip6(0), raw(17, 9, 0, 0, 0, 0, 0, 0)),
			"17 2001:db8::1.0>2001:db8::2.0", "48/62 bytes vm1>vm2 ttl 64-64"},
		{"nothing follows", packet(t, v6, ip6(59), payload(8)), "59 2001:db8::1.0>2001:db8::2.0",
			"48/62 bytes vm1>vm2 ttl 64-64"},
		{"a length of zero", clear6(packet(t, v6, append([]gopacket.SerializableLayer{jumbo}, udp(10)...)...)),
			"17 2001:db8::1.1000>2001:db8::2.53", "58/72 bytes vm1>vm2 ttl 64-64"},
		{"ARP", packet(t, layers.EthernetTypeARP, payload(28)), "type 0806", "46/60 bytes vm1>vm2"},
		{"a type of no meaning", packet(t, 0x1234, payload(28)), "type 1234", "46/60 bytes vm1>vm2"},
	}
}

func TestD6_WhatAFlowIsToldBy(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 plain")
	for _, c := range toldFrames(t) {
		r.now -= r.now % 1e9
		r.frame("vm1", c.frame)
		start := r.now.Milliseconds() - r.start.Milliseconds()
		want := "1 packets " + c.counts + " t " + strconv.FormatInt(start, 10) + "-" + strconv.FormatInt(start, 10)
		got := r.drained()
		if len(got) != 1 || got["in vm1 vlan 5 01>02 "+c.flow] != want {
			t.Errorf("%s: %v, want %q %q", c.what, got, c.flow, want)
		}
	}
}

// clear6 takes the payload length out of an IPv6 header.
func clear6(frame []byte) []byte {
	frame[18], frame[19] = 0, 0
	return frame
}
