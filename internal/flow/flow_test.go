package flow

import (
	"net/netip"
	"testing"
	"unsafe"
)

// Counts of a later time or another place extend the times, keep the traffic class of the first packet and take the
// ports of the last.
func TestCountsAdd(t *testing.T) {
	a := Counts{Packets: 2, Bytes: 200, FrameBytes: 228, First: 10, Last: 20, In: 1, Out: 2, TCPFlags: 0x02, TOS: 8,
		MinTTL: 60, MaxTTL: 64}
	b := Counts{Packets: 1, Bytes: 50, FrameBytes: 64, First: 5, Last: 15, In: 3, Out: 4, TCPFlags: 0x10, TOS: 16,
		MinTTL: 61, MaxTTL: 128}
	want := Counts{Packets: 3, Bytes: 250, FrameBytes: 292, First: 5, Last: 20, In: 1, Out: 2, TCPFlags: 0x12, TOS: 16,
		MinTTL: 60, MaxTTL: 128}
	for name, order := range map[string][2]Counts{"later first": {a, b}, "earlier first": {b, a}} {
		t.Run(name, func(t *testing.T) {
			var c Counts
			c.Add(order[0])
			c.Add(Counts{})
			c.Add(order[1])
			if c != want {
				t.Errorf("%s: %+v, want %+v", name, c, want)
			}
		})
	}
}

func TestKeyAddresses(t *testing.T) {
	k := Key{EtherType: IPv4, Src: [16]byte{192, 0, 2, 1}, Dst: [16]byte{192, 0, 2, 2}}
	if s, d := k.Addresses(); s != netip.MustParseAddr("192.0.2.1") || d != netip.MustParseAddr("192.0.2.2") {
		t.Errorf("%s %s", s, d)
	}
	k.EtherType = IPv6
	if s, _ := k.Addresses(); s != netip.MustParseAddr("c000:201::") {
		t.Errorf("%s", s)
	}
	k.EtherType = 0x0806
	if s, _ := k.Addresses(); s.IsValid() {
		t.Errorf("ARP has no address: %s", s)
	}
	if n := unsafe.Sizeof(k); n != 56 {
		t.Errorf("a key takes %d bytes", n)
	}
}

// A number that belongs to another overlay segment is noticed, so that flows counted under it end before; a segment
// more or less is not, and a point is the same whatever segments it has.
func TestPointsKnowWhenTheirSegmentsAreRenumbered(t *testing.T) {
	had := Point{Number: 7, Overlay: &Overlay{1: {VNI: 5000}, 2: {VNI: 6000}}}
	for name, c := range map[string]struct {
		now        *Overlay
		renumbered bool
	}{
		"the same":       {&Overlay{1: {VNI: 5000}, 2: {VNI: 6000}}, false},
		"one more":       {&Overlay{1: {VNI: 5000}, 2: {VNI: 6000}, 3: {VNI: 7000}}, false},
		"one less":       {&Overlay{1: {VNI: 5000}}, false},
		"another VNI":    {&Overlay{1: {VNI: 5000}, 2: {VNI: 7000}}, true},
		"another VLAN":   {&Overlay{1: {VNI: 5000, VLAN: 10}}, true},
		"no overlay now": {nil, false},
	} {
		now := Point{Number: 7, Overlay: c.now}
		if had.Renumbered(now) != c.renumbered || !had.Same(now) {
			t.Errorf("%s: renumbered %v, the same %v", name, had.Renumbered(now), had.Same(now))
		}
	}
	if had.Same(Point{Number: 8, Overlay: had.Overlay}) {
		t.Error("another port is the same point")
	}
}
