package segments

import (
	"log/slog"
	"net/netip"
	"reflect"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
	"heddle/internal/plan"
)

// What a controller has said is there again after a start without one.
func TestKeeper_WhatIsKnownOutlivesTheProcess(t *testing.T) {
	table := span.NewTable()
	for i, id := range []string{"a", "b"} {
		table.Report(id, id, span.Report{Whole: true,
			Endpoints: []span.Endpoint{{Address: netip.AddrFrom4([4]byte{10, 9, byte(i), 2}), MTU: 1600}},
			Segments: []span.SegmentReport{{VNI: 5000, Whole: true, Put: []span.Item{{
				Key:   span.MACKey(plan.MAC{2, 0, 0, 0, 0, byte(i + 1)}),
				Claim: span.Claim{Source: span.Port, Since: 7}}}}}}, time.UnixMilli(1000))
	}
	u, _, _ := table.Since(5000, span.Cursor{}, false)
	o := Options{Dir: t.TempDir(), Self: func() string { return "a" }, Changed: func() {}, Log: slog.Default()}
	k := New(o)
	if _, err := k.Heard(&controllerv1.FollowSegmentsResponse{Current: true,
		Updates: []*controllerv1.SegmentUpdate{wire.Update(u)}}); err != nil {
		t.Fatal(err)
	}
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	was, now := k.Reach([]uint32{5000}), New(o).Reach([]uint32{5000})
	if len(was.Endpoints) != 1 || !reflect.DeepEqual(was, now) {
		t.Errorf("it knew %+v, and knows %+v", was, now)
	}
	if all := New(o).All(); len(all.Put) != 1 || all.Put[0].Endpoint != netip.MustParseAddr("10.9.1.2") {
		t.Errorf("it locates %+v", all)
	}
}
