package export

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// TestS105_RecordsOfAnOverlayHaveItsVNI: layer2SegmentId is the VNI with the type of VXLAN, and the VLAN is the one
// inside; where keys have VLANs, it is 0.
func TestS105_RecordsOfAnOverlayHaveItsVNI(t *testing.T) {
	var p ports
	p.follow(flow.Points{
		1: {Number: 11, Overlay: &flow.Overlay{3: {VNI: 5000, VLAN: 10}, 4: {VNI: 16777214}}},
		2: {Number: 12, Uplink: true},
	})
	for _, c := range []struct {
		slot, vlan, inside uint16
		id                 uint64
	}{
		{1, 3, 10, 0x01_00_00_00_00_00_13_88},
		{1, 4, 0, 0x01_00_00_00_00_ff_ff_fe},
		{1, 5, 5, 0}, // a segment that has gone
		{2, 3, 3, 0},
		{2, flow.AD | 100, 100, 0},
		{9, 3, 3, 0},
	} {
		if inside, id := p.of(c.slot).segment(c.vlan); inside != c.inside || id != c.id {
			t.Errorf("slot %d, VLAN %d: VLAN %d in %#x, want %d in %#x", c.slot, c.vlan, inside, id, c.inside, c.id)
		}
	}
	s, err := newStandard()
	if err != nil {
		t.Fatal(err)
	}
	r := flow.Record{Key: flow.Key{Point: 1, VLAN: 3, EtherType: flow.IPv4, Protocol: protoUDP}}
	l, _, _ := s.of(&r, &p)
	rec := make([]byte, l.t.RecordLength())
	l.fill(rec, &r, &p, flow.Ends{})
	if !bytes.Contains(rec, []byte{0, 10, 0, 10, 0, 10, 1, 0, 0, 0, 0, 0, 0x13, 0x88, 8, 0}) {
		t.Errorf("the record lacks its VLAN, thrice, its VNI and its EtherType: %x", rec)
	}
}

// ends knows where two MACs of the tunnel are.
type ends map[plan.MAC]flow.Ends

func (e ends) Locate(c flow.Crossing) (flow.Ends, bool) {
	at, ok := e[c.Other]
	return at, ok && c.Tunnel == 4 && c.Segment == 9
}

// TestS105_RecordsNameTheEndpoints: what leaves by a tunnel has the other host's endpoint as the next hop, and in the
// shape of a VDS the outer packet beside the inner one; what arrives, floods or is not known has neither.
func TestS105_RecordsNameTheEndpoints(t *testing.T) {
	near, four, six, lost := plan.MAC{2, 0, 0, 0, 1, 1}, plan.MAC{2, 4}, plan.MAC{2, 6}, plan.MAC{2, 9}
	p := ports{ends: recentEnds{locator: ends{
		four: {Local: netip.MustParseAddr("192.0.2.1"), Remote: netip.MustParseAddr("192.0.2.2"), Port: 4790},
		six:  {Local: netip.MustParseAddr("2001:db8::1"), Remote: netip.MustParseAddr("2001:db8::2"), Port: 4790},
	}}}
	p.follow(flow.Points{
		1: {ID: plan.PortID{Switch: "lab", Name: "vm1"}, Number: 11, Overlay: &flow.Overlay{9: {VNI: 5000}}},
		4: {ID: plan.PortID{Switch: "lab", Name: spec.TunnelName}, Number: 2, Uplink: true,
			Overlay: &flow.Overlay{9: {VNI: 5000}}},
	})
	udp := func(point uint16, d flow.Direction, to plan.MAC, etherType uint16) flow.Record {
		r := flow.Record{Key: flow.Key{Point: point, VLAN: 9, EtherType: etherType, Direction: d, Protocol: protoUDP,
			SrcMAC: near, DstMAC: to, Src: [16]byte{10, 0, 0, 1}, Dst: [16]byte{10, 0, 0, 2}, SrcPort: 7, DstPort: 8}}
		r.Total.In, r.Total.Out, r.Delta.MaxTTL = 1, 4, 63
		return r
	}
	ping := udp(4, flow.Egress, four, flow.IPv6)
	ping.Key.Protocol = protoICMPv6
	arriving := udp(4, flow.Ingress, four, flow.IPv4)
	arriving.Total.In, arriving.Total.Out = 4, 1
	both := udp(4, flow.Egress, four, flow.IPv4)
	both.Reverse = &flow.Reverse{}
	for name, c := range map[string]struct {
		r             flow.Record
		standard, vds uint16 // templates; 0 for none
	}{
		"at the tunnel":                {udp(4, flow.Egress, four, flow.IPv4), 511, 260},
		"at the guest's port":          {udp(1, flow.Ingress, four, flow.IPv4), 511, 0},
		"IPv6 inside":                  {udp(4, flow.Egress, four, flow.IPv6), 521, 262},
		"ICMP over IPv6 inside":        {ping, 522, 263},
		"to an endpoint of IPv6":       {udp(4, flow.Egress, six, flow.IPv4), 711, 266},
		"a conversation":               {both, 561, 260},
		"to a MAC that nobody knows":   {udp(4, flow.Egress, lost, flow.IPv4), 311, 266},
		"what arrives from the tunnel": {arriving, 311, 0},
		"ARP":                          {udp(4, flow.Egress, four, 0x806), 500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []struct {
				shape Shape
				want  uint16
			}{{Standard, c.standard}, {VDS, c.vds}} {
				sh, err := shapeOf(s.shape)
				if err != nil {
					t.Fatal(err)
				}
				l, _, at := sh.of(&c.r, &p)
				if l == nil {
					if s.want != 0 {
						t.Errorf("%s: no record, want one of template %d", s.shape, s.want)
					}
					continue
				}
				if l.t.ID() != s.want {
					t.Errorf("%s: template %d, want %d", s.shape, l.t.ID(), s.want)
				}
				checkWay(t, l, &c.r, &p, at)
			}
		})
	}
}

// checkWay compares what a record says of the way of its frames with what is known of it.
func checkWay(t *testing.T, l *layout, r *flow.Record, p *ports, at flow.Ends) {
	t.Helper()
	rec := make([]byte, l.t.RecordLength())
	l.fill(rec, r, p, at)
	value := func(name string) (v []byte) {
		offset := 0
		for i := range l.t.Len() {
			n := int(l.t.Field(i).Length)
			if l.t.Field(i).Element().Name == name {
				v = rec[offset : offset+n]
			}
			offset += n
		}
		return v
	}
	want := map[string][]byte{}
	switch id := l.t.ID(); {
	case id >= 700:
		want["ipNextHopIPv6Address"] = at.Remote.AsSlice()
	case id >= 500:
		want["ipNextHopIPv4Address"] = at.Remote.AsSlice()
	case id >= 260 && id <= 263:
		want = map[string][]byte{"sourceIPv4Address": {192, 0, 2, 1}, "destinationIPv4Address": {192, 0, 2, 2},
			"sourceTransportPort": {0, 0}, "destinationTransportPort": {4790 >> 8, 4790 & 0xff},
			"protocolIdentifier": {protoUDP}, "maximumTTL": {outerTTL}, "tenantProtocol": {r.Key.Protocol},
			"layer2SegmentId": {1, 0, 0, 0, 0, 0, 0x13, 0x88}, "egressInterfaceAttr": {0, tunnelPort},
			"ingressInterfaceAttr": {0, accessPort}}
		source, destination := "tenantSourceIPv4", "tenantDestIPv4"
		n := 4
		if id >= 262 {
			source, destination, n = "tenantSourceIPv6", "tenantDestIPv6", 16
		}
		want[source], want[destination] = r.Key.Src[:n], r.Key.Dst[:n]
		if id%2 == 0 {
			want["tenantSourcePort"], want["tenantDestPort"] = []byte{0, 7}, []byte{0, 8}
		}
	}
	for name, w := range want {
		if got := value(name); !bytes.Equal(got, w) {
			t.Errorf("template %d: %s is %x, want %x", l.t.ID(), name, got, w)
		}
	}
}

// asked counts how often it is asked where a MAC is, which moves.
type asked struct {
	times int
	at    flow.Ends
}

func (a *asked) Locate(flow.Crossing) (flow.Ends, bool) { a.times++; return a.at, true }

// TestS105_ARecordNamesTheEndpointOfItsTime: the kernel is asked once for the records of a moment, however many there
// are, and again for later ones.
func TestS105_ARecordNamesTheEndpointOfItsTime(t *testing.T) {
	a := &asked{at: flow.Ends{Remote: netip.MustParseAddr("192.0.2.2")}}
	r := recentEnds{locator: a}
	way := flow.Crossing{Tunnel: 4, Segment: 9, VNI: 5000, Leaves: true, Other: plan.MAC{2}}
	find := func(up time.Duration) netip.Addr {
		r.at(meter.Instant{Up: up})
		ends, ok := r.locate(way)
		if !ok {
			t.Fatal("nothing is known")
		}
		return ends.Remote
	}
	for range 1000 {
		find(time.Hour)
	}
	if a.times != 1 {
		t.Errorf("the kernel was asked %d times for the records of one moment", a.times)
	}
	a.at.Remote = netip.MustParseAddr("192.0.2.3")
	if got := find(time.Hour + recentFor); got != a.at.Remote {
		t.Errorf("the record names %s, where the MAC was before", got)
	}
	way.Other = plan.MAC{4}
	for n := range 3 * recentMost {
		way.Segment = uint16(n)
		r.locate(way)
	}
	if len(r.known) > recentMost {
		t.Errorf("%d answers are remembered", len(r.known))
	}
}
