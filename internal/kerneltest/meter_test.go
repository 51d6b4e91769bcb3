package kerneltest

import (
	"net"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"github.com/gopacket/gopacket"
)

// metered meters both directions of both ports.
const metered = `
  uplinks: [{name: u1, device: dev1}]
  defaults: {vlan: {access: 5}, security: {forgedTransmits: accept}}
  portGroups:
  - {name: m, monitoring: {ipfix: true}}
  - {name: plain}
`

func ip4(protocol layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: protocol, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
}

func ip6(next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: next, SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8::2")}
}

func payload(n int) gopacket.Payload { return make([]byte, n) }

func TestD6_AFrameIsMeteredWhereItCameFromAndWhereItGoes(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 m")
	udp := packet(t, layers.EthernetTypeIPv4, ip4(layers.IPProtocolUDP), &layers.UDP{SrcPort: 1000, DstPort: 53}, payload(100))
	r.frame("vm1", udp)
	r.frame("vm1", udp)
	const counts = "2 packets 256/284 bytes vm1>vm2 ttl 64-64 t 1-2"
	r.expect(map[string]string{
		"in vm1 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53":  counts,
		"out vm2 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53": counts,
	})
	r.expect(nil)
	r.frame("vm1", udp)
	r.change("monitoring: {ipfix: true}", "monitoring: {ipfix: true, observe: egress}")
	r.frame("vm1", udp)
	r.expect(map[string]string{
		"in vm1 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53":  "1 packets 128/142 bytes vm1>vm2 ttl 64-64 t 3-3",
		"out vm2 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53": "2 packets 256/284 bytes vm1>vm2 ttl 64-64 t 3-4",
	})
	r.change("monitoring: {ipfix: true, observe: egress}", "monitoring: {ipfix: true, observe: ingress}")
	r.frame("vm1", udp)
	r.expect(map[string]string{"in vm1 vlan 5 01>02 17 10.0.0.1.1000>10.0.0.2.53": "1 packets 128/142 bytes vm1>vm2 ttl 64-64 t 5-5"})
	r.change("monitoring: {ipfix: true, observe: ingress}", "monitoring: {ipfix: false}")
	r.frame("vm1", udp)
	r.expect(nil)
}
