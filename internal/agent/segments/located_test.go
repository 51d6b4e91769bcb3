package segments

import (
	"log/slog"
	"maps"
	"net/netip"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
	"heddle/internal/plan"
)

// said is what one host claims of the MAC.
type said struct {
	host     string
	vlan     uint16 // 0 = none in particular
	untagged bool
	source   span.Source
}

// TestS112_WhatControllersSayOfVLANs: what the kernel of host a is told, and whether a takes a MAC that it has learned
// in VLAN 10 to be elsewhere. Later claims come after earlier ones.
func TestS112_WhatControllersSayOfVLANs(t *testing.T) {
	mac := plan.MAC{0, 0, 0x5e, 0, 1, 7}
	const any = overlay.Inside(0)
	learned, port := span.Learned, span.Port
	for _, c := range []struct {
		name      string
		said      []said
		at        map[overlay.Inside]string // host, by VLAN
		elsewhere bool
	}{
		{name: "in two VLANs at two hosts", said: []said{{"b", 10, false, learned}, {"c", 20, false, learned}},
			at: map[overlay.Inside]string{overlay.In(10): "b", overlay.In(20): "c"}, elsewhere: true},
		{name: "untagged and in a VLAN", said: []said{{"b", 0, true, learned}, {"c", 20, false, learned}},
			at: map[overlay.Inside]string{overlay.In(0): "b", overlay.In(20): "c"}},
		{name: "here in one VLAN", said: []said{{"a", 10, false, learned}, {"c", 20, false, learned}},
			at: map[overlay.Inside]string{overlay.In(20): "c"}},
		{name: "a trunk's own", said: []said{{"b", 0, false, port}}, at: map[overlay.Inside]string{any: "b"}},
		{name: "a trunk's own, which another host sends",
			said: []said{{"b", 0, false, port}, {"c", 20, false, learned}},
			at:   map[overlay.Inside]string{any: "b"}},
		{name: "another host sends it before", said: []said{{"c", 20, false, learned}, {"b", 0, false, port}},
			at: map[overlay.Inside]string{any: "b"}},
		{name: "a trunk's own and that of a port of one VLAN",
			said: []said{{"b", 0, false, port}, {"c", 20, false, port}},
			at:   map[overlay.Inside]string{any: "b", overlay.In(20): "c"}},
		{name: "it may have moved to an older host", said: []said{{"a", 10, false, learned}, {"b", 0, false, learned}},
			at: map[overlay.Inside]string{any: "b"}, elsewhere: true},
		{name: "it came from an older host", said: []said{{"b", 0, false, learned}, {"a", 10, false, learned}},
			at: map[overlay.Inside]string{any: "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := span.NewTable()
			for i, id := range []string{"a", "b", "c"} {
				table.Report(id, id, span.Report{Whole: true, Endpoints: []span.Endpoint{{
					Address: netip.AddrFrom4([4]byte{10, 9, byte(i), 2})}},
					Segments: []span.SegmentReport{{VNI: 5000, Whole: true}}}, time.UnixMilli(1))
			}
			k := New(Options{Dir: t.TempDir(), Self: func() string { return "a" }, Changed: func() {},
				Log: slog.Default()})
			var cursor span.Cursor
			kernel := map[overlay.Inside]string{}
			for i, s := range append([]said{{}}, c.said...) {
				if s.host != "" {
					item := span.Item{Key: span.MACKey(mac).In(s.vlan),
						Claim: span.Claim{Source: s.source, Untagged: s.untagged}}
					table.Report(s.host, s.host, span.Report{Segments: []span.SegmentReport{{VNI: 5000,
						Put: []span.Item{item}}}}, time.UnixMilli(int64(i+2)))
				}
				var u *span.Update
				u, cursor, _ = table.Since(5000, cursor, false)
				if _, err := k.Heard(&controllerv1.FollowSegmentsResponse{Updates: []*controllerv1.SegmentUpdate{
					wire.Update(u)}}); err != nil {
					t.Fatal(err)
				}
				change := k.Take()
				for _, key := range change.Removed {
					delete(kernel, key.Inside)
				}
				for _, l := range change.Put {
					kernel[l.Inside] = string(rune('a' + l.Endpoint.As4()[2]))
				}
			}
			all := map[overlay.Inside]string{}
			for _, l := range k.All().Put {
				all[l.Inside] = string(rune('a' + l.Endpoint.As4()[2]))
			}
			if !maps.Equal(kernel, c.at) || !maps.Equal(all, c.at) {
				t.Errorf("the kernel has it at %v, and at %v if all is told anew; want %v", kernel, all, c.at)
			}
			key := overlay.Key{VNI: 5000, Inside: overlay.In(10), MAC: mac}
			if got := k.Elsewhere(key); got != c.elsewhere {
				t.Errorf("elsewhere: %v", got)
			}
		})
	}
}
