package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// The sums are those of each switch: drops of all its members, frames of its ports alone.
func TestVitals_SumUpEachSwitch(t *testing.T) {
	member := func(sw, name string, uplink bool) view.Member {
		return view.Member{ID: plan.PortID{Switch: sw, Name: name}, Uplink: uplink}
	}
	frames := func(in, out, dropped uint64) observe.Counters {
		c := observe.Counters{Drops: map[abi.Reason]uint64{abi.ReasonMalformed: dropped}}
		c.PacketsIn[abi.ClassUnicast], c.PacketsIn[abi.ClassBroadcast] = in, 1
		c.PacketsOut[abi.ClassMulticast] = out
		return c
	}
	v := view.NewVitals()
	v.Add(member("dvs", "uplink1", true), frames(1000, 1000, 3))
	v.Add(member("dvs", "a", false), frames(10, 20, 0))
	v.Add(member("dvs", "b", false), frames(5, 6, 4))
	v.Add(member("own", "c", false), frames(0, 0, 0))
	want := []api.Vitals{{Switch: "dvs", Drops: api.ReasonCounts{{Reason: "malformed", Value: 7}}, Sent: 17, Handed: 26,
		Ports: 2, ReadAt: 9}, {Switch: "own", Drops: api.ReasonCounts{}, Sent: 1, Ports: 1, ReadAt: 9}}
	if diff := cmp.Diff(want, v.At(9)); diff != "" {
		t.Error(diff)
	}
}
