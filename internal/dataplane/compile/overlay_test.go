package compile

import (
	"net/netip"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// overlayPlan is a switch with a tunnel, a port in a VLAN, and one in each of these segments.
func overlayPlan(segments ...OverlaySegment) *plan.Plan {
	sw := &plan.Switch{Name: "lab", Kind: spec.Distributed, MTU: 1500,
		Tunnel: &plan.Tunnel{ID: plan.PortID{Switch: "lab", Name: spec.TunnelName}, Number: 9}}
	add := func(name string, s OverlaySegment) {
		p := &plan.Effective{}
		if s.VLAN != 0 {
			p.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: s.VLAN}
		}
		p.Teaming.Policy.V = spec.OriginatingPort
		sw.Ports = append(sw.Ports, &plan.Port{ID: plan.PortID{Switch: "lab", Name: name}, PortGroup: name, VNI: s.VNI,
			Policy: p, InitialMAC: plan.MAC{2, 0, 0, 0, 0, byte(len(sw.Ports) + 1)}})
	}
	add("vlan", OverlaySegment{VLAN: 7})
	for i, s := range segments {
		add(string(rune('a'+i)), s)
	}
	return &plan.Plan{Switches: []*plan.Switch{sw}}
}

// bound connects everything of a plan.
func bound(p *plan.Plan) binding.Desired {
	d := binding.Desired{Plan: p, Facts: plan.Facts{}, Attachments: map[plan.PortID]binding.Attachment{},
		Reach: map[string]overlay.Reach{}}
	for id := range MembersOf(p.Switches[0]) {
		d.Facts[id] = plan.Fact{Up: true, MTU: 1600}
		d.Attachments[id] = binding.Attachment{Ifindex: 1}
	}
	return d
}

// A port of an overlay segment never shares a segment with a port of a VLAN, or of another segment, and leaves by the
// tunnel alone.
func TestOverlaySegmentsAreApart(t *testing.T) {
	p := overlayPlan(OverlaySegment{VNI: 7}, OverlaySegment{VNI: 7, VLAN: 7}, OverlaySegment{VNI: 8})
	s := NewSlots()
	if _, err := s.Assign(p); err != nil {
		t.Fatal(err)
	}
	img, err := Tables(bound(p), s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]string{}
	tunnel := s.Ports[p.Switches[0].Tunnel.ID]
	for _, port := range p.Switches[0].Ports {
		rec := img.Ports[s.Ports[port.ID]]
		segment := uint32(rec.SwitchID)<<16 | uint32(rec.Access)
		if other, shared := seen[segment]; shared || rec.VLANMode != abi.VLANAccess {
			t.Errorf("port %s is in a segment with %q: %+v", port.ID, other, rec)
		}
		seen[segment] = port.ID.Name
		if want := tunnel; port.VNI != 0 && uint32(rec.Uplink) != want || port.VNI == 0 && rec.Uplink != 0 {
			t.Errorf("port %s leaves by slot %d; the tunnel is %d", port.ID, rec.Uplink, want)
		}
		if rec.SwitchID == img.Ports[tunnel].SwitchID != (port.VNI != 0) {
			t.Errorf("port %s is in switch %d, the tunnel in %d", port.ID, rec.SwitchID, img.Ports[tunnel].SwitchID)
		}
	}
}

func TestWhatCannotBeCarriedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Switch)
		want   string
	}{
		"no tunnel": {func(sw *plan.Switch) { sw.Tunnel = nil }, "the switch has no tunnel"},
		"trunk": {func(sw *plan.Switch) {
			sw.Ports[1].Policy.VLAN.V = plan.VLAN{Mode: plan.VLANTrunk, Set: plan.VLANSet{2}, AD: true}
		}, "a trunk of 802.1ad inside an overlay segment"},
	} {
		t.Run(name, func(t *testing.T) {
			p := overlayPlan(OverlaySegment{VNI: 7})
			c.change(p.Switches[0])
			s := NewSlots()
			if _, err := s.Assign(p); err != nil {
				t.Fatal(err)
			}
			if _, err := Tables(bound(p), s, 1000); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not one with %q", err, c.want)
			}
			if err := Fits(p); err == nil {
				t.Error("it is said to fit")
			}
		})
	}
}

// A trunk is in the segment of each of its VLANs, by numbers that it shares with the ports of these VLANs. One of as
// many VLANs as there are numbers fits, and one of more says the bound.
func TestATrunkIsInASegmentForEachVLAN(t *testing.T) {
	p := overlayPlan(OverlaySegment{VNI: 5, VLAN: 10}, OverlaySegment{VNI: 5}, OverlaySegment{VNI: 6})
	trunk := &p.Switches[0].Ports[2].Policy.VLAN.V
	*trunk = plan.VLAN{Mode: plan.VLANTrunk}
	trunk.Set.AddRange(9, 11)
	s := NewSlots()
	if _, err := s.Assign(p); err != nil {
		t.Fatal(err)
	}
	img, err := Tables(bound(p), s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	number := func(vni uint32, vlan uint16) uint16 { return s.Segments[OverlaySegment{"lab", vni, vlan}] }
	rec := img.Ports[s.Ports[p.Switches[0].Ports[2].ID]]
	set := plan.VLANSet(img.VLANSets[rec.VLANSet].Bits)
	if rec.VLANMode != abi.VLANTrunk || set.Count() != 3 || !set.Has(number(5, 9)) || !set.Has(number(5, 10)) ||
		!set.Has(number(5, 11)) || set.Has(number(6, 0)) {
		t.Errorf("the trunk is %+v with %s; the numbers are %v", rec, set, s.Segments)
	}
	if access := img.Ports[s.Ports[p.Switches[0].Ports[1].ID]].Access; access != number(5, 10) || access == 0 {
		t.Errorf("the port of VLAN 10 has number %d, the trunk %d", access, number(5, 10))
	}
	trunk.Set = plan.VLANSet{}
	trunk.Set.AddRange(1, 4093)
	if _, err := NewSlots().Assign(p); err != nil {
		t.Errorf("4,094 segments are refused: %v", err)
	}
	trunk.Set.AddRange(1, 4094)
	if _, err := NewSlots().Assign(p); err == nil || !strings.Contains(err.Error(), "at most 4094 overlay segments") ||
		!strings.Contains(err.Error(), "its ports are in 4095") {
		t.Errorf("for 4,095 segments the error is %v", err)
	}
}

// Segments keep their numbers while others come and go, and a number is free again only after Release.
func TestOverlaySegmentsKeepTheirNumbers(t *testing.T) {
	s := NewSlots()
	five, six, seven := OverlaySegment{"lab", 5, 0}, OverlaySegment{"lab", 6, 0}, OverlaySegment{"lab", 7, 0}
	assign := func(segments ...OverlaySegment) *Assignment {
		a, err := s.Assign(overlayPlan(segments...))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	s.Release(assign(five, six))
	number := s.Segments[six]
	a := assign(six, seven)
	if s.Segments[six] != number || s.Segments[seven] == s.Segments[five] || len(s.Segments) != 3 {
		t.Errorf("the numbers are %v", s.Segments)
	}
	s.Release(a)
	if _, there := s.Segments[five]; there || len(s.Segments) != 2 {
		t.Errorf("after the release the numbers are %v", s.Segments)
	}
	s.Undo(assign(five, six, seven))
	if len(s.Segments) != 2 {
		t.Errorf("after the refusal the numbers are %v", s.Segments)
	}
}

// One copy goes to a host, to an endpoint of a family that this host has; where a MAC is counts in every VLAN inside.
func TestTunnelsAreCompiled(t *testing.T) {
	p := overlayPlan(OverlaySegment{VNI: 5}, OverlaySegment{VNI: 5, VLAN: 10})
	sw := p.Switches[0]
	four, again := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	six := netip.MustParseAddr("2001:db8::2")
	sw.Tunnel.Peers = []plan.TunnelPeer{{Name: "six", Address: six},
		{Name: "h2", Address: four, MACs: []plan.TunnelMAC{{VNI: 5, MAC: plan.MAC{2, 0, 0, 0, 0, 9}}}},
		{Name: "h2", Address: again}}
	sw.Tunnel.Learning = true
	s := NewSlots()
	if _, err := s.Assign(p); err != nil {
		t.Fatal(err)
	}
	d := bound(p)
	d.Facts[sw.Tunnel.ID] = plan.Fact{Up: true, MTU: 1600, Endpoints: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	d.Reach["lab"] = overlay.Of(sw)
	n := EndpointNumbers{}
	if err := n.Assign(d, s, map[uint32]bool{1: true}); err != nil {
		t.Fatal(err)
	}
	tables, slot := Tunnels(d, s, n), s.Ports[sw.Tunnel.ID]
	own := tables.Tunnels[slot]
	if own.Ipv4 != 1 || own.Ipv6 != 0 || own.Mtu4 != 1550 || own.Mtu6 != 1530 || own.Rules != abi.TunnelLearns {
		t.Errorf("this host's end is %+v", own)
	}
	number := n[endpointName(slot, four)]
	if number == 1 || len(n) != 3 || len(tables.Segments) != 2 || len(tables.Locations) != 1 {
		t.Errorf("endpoints %v, segments %v, locations %v", n, tables.Segments, tables.Locations)
	}
	for key, seg := range tables.Segments {
		if seg.Vni != 5 || seg.Count != 1 || uint32(seg.Member[0]) != number {
			t.Errorf("segment %x is %+v, and endpoint %s has number %d", key, seg, four, number)
		}
	}
	where := WholeVNI(slot, overlay.Key{VNI: 5, MAC: plan.MAC{2, 0, 0, 0, 0, 9}})
	if l := tables.Locations[where]; l.Endpoint != number || where.Whole == 0 {
		t.Errorf("in VNI 5 the MAC is at %+v", l)
	}
	for name, e := range tables.Endpoints {
		if AddressOf(e) != four && AddressOf(e) != again && AddressOf(e) != six || e.Flags&abi.EndpointNamed == 0 {
			t.Errorf("endpoint %v is %+v", name, e)
		}
	}
}
