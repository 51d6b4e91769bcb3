package plan_test

import (
	"testing"

	"heddle/internal/plan"
)

func TestSegmentsAreSaidAndWritten(t *testing.T) {
	for _, c := range []struct {
		s              plan.Segment
		words, written string
	}{
		{plan.Segment{}, "", ""},
		{plan.SegmentOf(0, false), "untagged", "untagged"},
		{plan.SegmentOf(10, false), "VLAN 10", "10"},
		{plan.SegmentOf(10, true), "802.1ad VLAN 10", "ad:10"},
		{plan.SegmentOf(0, false).In(5000), "VNI 5000", "vni:5000"},
		{plan.SegmentOf(10, false).In(5000), "VLAN 10 in VNI 5000", "vni:5000/10"},
		{plan.SegmentOf(10, false).In(0), "VLAN 10", "10"},
	} {
		if c.s.Words() != c.words || c.s.String() != c.written {
			t.Errorf("%+v: %q and %q, want %q and %q", c.s, c.s.Words(), c.s.String(), c.words, c.written)
		}
	}
}
