package wire

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
)

func report() span.Report {
	mac, other := plan.MAC{2, 0, 0, 0, 0, 1}, plan.MAC{2, 0, 0, 0, 0, 2}
	return span.Report{Whole: true,
		Endpoints: []span.Endpoint{{Address: netip.MustParseAddr("192.0.2.1"), MTU: 1600},
			{Address: netip.MustParseAddr("2001:db8::1"), MTU: 9000, Down: true}},
		Segments: []span.SegmentReport{{VNI: 5000, Whole: true, Put: []span.Item{
			{Key: span.MACKey(mac), Claim: span.Claim{Source: span.Port, Generation: 7, Since: 9}},
			{Key: span.AddressKey(netip.MustParseAddr("10.0.0.1")), Claim: span.Claim{Source: span.Learned, Owner: mac,
				Order: 3}},
			{Key: span.MACKey(other), Claim: span.Claim{Source: span.Learned, Untagged: true}},
			{Key: span.MACKey(other).In(10), Claim: span.Claim{Source: span.Learned, Since: 2}},
			{Key: span.AddressKey(netip.MustParseAddr("10.0.0.1")).In(20), Claim: span.Claim{Source: span.Learned,
				Owner: mac}}},
			Removed: []span.Key{span.AddressKey(netip.MustParseAddr("2001:db8::9")), span.MACKey(mac).In(4094)}},
			{VNI: 6, Left: true}}}
}

// What is written is read as it was.
func TestReport_IsReadAsItWasWritten(t *testing.T) {
	want := report()
	got, err := ReadReport(Report(&want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nis read as\n%+v: %v", want, got, err)
	}
}

func TestUpdate_IsReadAsItWasWritten(t *testing.T) {
	table := span.NewTable()
	table.Report("id1", "host1", report(), time.UnixMilli(5))
	want := table.Snapshot(5000)
	got, err := ReadUpdate(Update(want))
	slices.SortFunc(got.Put, func(a, b span.Place) int { return a.Key.Compare(b.Key) }) // those inside come last
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nis read as\n%+v: %v", want, got, err)
	}
	if u, err := ReadUpdate(Update(&span.Update{VNI: 7, Gone: true})); err != nil || !u.Gone || u.VNI != 7 {
		t.Errorf("gone is read as %+v: %v", u, err)
	}
}

// A message that is not well formed is refused.
func TestReadReport_Refuses(t *testing.T) {
	item := func(i *controllerv1.SegmentItem) *controllerv1.SegmentReport {
		return &controllerv1.SegmentReport{Segments: []*controllerv1.HostSegment{{Vni: 5,
			Put: []*controllerv1.SegmentItem{i}}}}
	}
	mac := []byte{2, 0, 0, 0, 0, 1}
	many := &controllerv1.SegmentReport{EndpointsSet: true}
	for range span.MostEndpoints + 1 {
		many.Endpoints = append(many.Endpoints, &controllerv1.TunnelEndpoint{Address: []byte{192, 0, 2, 1}})
	}
	mapped := netip.MustParseAddr("::ffff:10.0.0.1")
	for name, m := range map[string]*controllerv1.SegmentReport{
		"no VNI":             {Segments: []*controllerv1.HostSegment{{}}},
		"a VNI too high":     {Segments: []*controllerv1.HostSegment{{Vni: 1<<24 - 1}}},
		"a short key":        item(&controllerv1.SegmentItem{Key: mac[:5], Source: 1}),
		"a group's MAC":      item(&controllerv1.SegmentItem{Key: []byte{1, 0, 0, 0, 0, 1}, Source: 1}),
		"no source":          item(&controllerv1.SegmentItem{Key: mac}),
		"an unknown source":  item(&controllerv1.SegmentItem{Key: mac, Source: 3}),
		"a MAC with owner":   item(&controllerv1.SegmentItem{Key: mac, Source: 1, Owner: mac}),
		"an owner too short": item(&controllerv1.SegmentItem{Key: []byte{10, 0, 0, 1}, Source: 1, Owner: mac[:3]}),
		"a mapped address":   item(&controllerv1.SegmentItem{Key: mapped.AsSlice(), Source: 1}),
		"removed nothing":    {Segments: []*controllerv1.HostSegment{{Vni: 5, Removed: [][]byte{{}}}}},
		"inside without VLAN": {Segments: []*controllerv1.HostSegment{{Vni: 5,
			PutInside: []*controllerv1.SegmentItem{{Key: mac, Source: 1}}}}},
		"a VLAN too high": {Segments: []*controllerv1.HostSegment{{Vni: 5,
			RemovedInside: []*controllerv1.SegmentKey{{Key: mac, Vlan: 4095}}}}},
		"endpoint of 3 bytes": {EndpointsSet: true,
			Endpoints: []*controllerv1.TunnelEndpoint{{Address: []byte{1, 2, 3}}}},
		"endpoints without end": many,
	} {
		if r, err := ReadReport(m); err == nil {
			t.Errorf("%s: it is read as %+v", name, r)
		}
	}
	if _, err := ReadUpdate(&controllerv1.SegmentUpdate{Vni: 5}); err == nil {
		t.Error("an update without a hash is read")
	}
	elsewhere := &controllerv1.SegmentUpdate{Vni: 5, Hash: make([]byte, 16),
		Put: []*controllerv1.SegmentPlace{{Host: 1, Item: &controllerv1.SegmentItem{Key: mac, Source: 1}}}}
	if _, err := ReadUpdate(elsewhere); err == nil {
		t.Error("a place on a host that is not listed is read")
	}
}
