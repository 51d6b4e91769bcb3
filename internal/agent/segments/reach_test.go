package segments

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
)

// TestS156_AHostCutsNoOtherOff: what another member says of a host's address makes its path no shorter, and what no
// path takes is not believed of anybody.
func TestS156_AHostCutsNoOtherOff(t *testing.T) {
	four, six := netip.MustParseAddr("10.9.0.2"), netip.MustParseAddr("2001:db8::2")
	for _, c := range []struct {
		said []span.Endpoint
		want int
	}{
		{[]span.Endpoint{{Address: four, MTU: 1500}, {Address: four, MTU: 1}}, 1500},
		{[]span.Endpoint{{Address: four, MTU: 1}, {Address: four, MTU: 1500}}, 1500},
		{[]span.Endpoint{{Address: four, MTU: 576}, {Address: four, MTU: 1500}}, 1500},
		{[]span.Endpoint{{Address: four, MTU: 1500}, {Address: four, MTU: 1400}}, 1500},
		{[]span.Endpoint{{Address: four, MTU: 575}}, 0},
		{[]span.Endpoint{{Address: four, MTU: 576}}, 576},
		{[]span.Endpoint{{Address: six, MTU: 1279}}, 0},
		{[]span.Endpoint{{Address: six, MTU: 1280}}, 1280},
	} {
		table := span.NewTable()
		for i, e := range c.said {
			id := string(rune('b' + i))
			table.Report(id, id, span.Report{Whole: true, Endpoints: []span.Endpoint{e},
				Segments: []span.SegmentReport{{VNI: 5000, Whole: true}}}, time.UnixMilli(1000))
		}
		u, _, _ := table.Since(5000, span.Cursor{}, false)
		k := New(Options{Dir: t.TempDir(), Self: func() string { return "a" }, Changed: func() {}, Log: slog.Default()})
		if _, err := k.Heard(&controllerv1.FollowSegmentsResponse{Current: true,
			Updates: []*controllerv1.SegmentUpdate{wire.Update(u)}}); err != nil {
			t.Fatal(err)
		}
		if r := k.Reach([]uint32{5000}); len(r.Endpoints) != 1 || r.Endpoints[0].MTU != c.want {
			t.Errorf("of %+v it takes %+v, want MTU %d", c.said, r.Endpoints, c.want)
		}
	}
}
