package span

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestS177_AnEndpointOfTwoHosts: it is named as long as both have it and share a segment.
func TestS177_AnEndpointOfTwoHosts(t *testing.T) {
	table, now := NewTable(), time.Unix(1_000_000, 0)
	say := func(id, address string, vnis ...VNI) {
		r := Report{Whole: true, Endpoints: []Endpoint{{Address: netip.MustParseAddr(address)}}}
		for _, v := range vnis {
			r.Segments = append(r.Segments, SegmentReport{VNI: v, Whole: true})
		}
		table.Report(id, "host-"+id, r, now)
	}
	say("c", "192.0.2.1", 5000, 5001)
	say("b", "192.0.2.1", 5000, 5001)
	say("a", "192.0.2.1", 6000) // elsewhere: nobody sees both
	say("d", "192.0.2.4", 5000)
	got := table.Twice()
	if len(got) != 1 || got[0].A.Name != "host-b" || got[0].B.Name != "host-c" ||
		got[0].Address != netip.MustParseAddr("192.0.2.1") {
		t.Fatalf("%+v", got)
	}
	say("b", "192.0.2.2", 5000, 5001)
	if got := table.Twice(); len(got) != 0 {
		t.Errorf("one of them has another address: %+v", got)
	}
	say("b", "192.0.2.1", 5000)
	table.Remove("c")
	if got := table.Twice(); len(got) != 0 {
		t.Errorf("one of them has left the cluster: %+v", got)
	}
}

// TestS177_AnEndpointOfManyHosts: each is named with the first of them, in the same order each time, up to a bound.
func TestS177_AnEndpointOfManyHosts(t *testing.T) {
	table, at := NewTable(), []Endpoint{{Address: netip.MustParseAddr("192.0.2.1")}}
	for i := range 2 * MostTwice {
		table.Report(fmt.Sprint(i), fmt.Sprintf("host-%04d", i), Report{Whole: true, Endpoints: at,
			Segments: []SegmentReport{{VNI: 5000, Whole: true}, {VNI: 5001, Whole: true}}}, time.Unix(1_000_000, 0))
	}
	got := table.Twice()
	if len(got) != MostTwice {
		t.Fatalf("%d pairs", len(got))
	}
	for i, p := range got {
		if p.A.Name != "host-0000" || p.B.Name != fmt.Sprintf("host-%04d", i+1) {
			t.Fatalf("pair %d: %+v", i, p)
		}
	}
}
