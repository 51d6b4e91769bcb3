package advise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
)

// metering makes a change to the flow status of the switch.
func metering(change func(*api.FlowSwitch)) func(*rig) {
	return func(r *rig) {
		sw := api.FlowSwitch{Switch: "lab", Metered: 2, Flows: 900, MaxFlows: 1000, Records: 7,
			Counted: api.FlowCounts{Packets: 1000},
			Collectors: []api.FlowCollector{{Collector: "192.0.2.9:4739", State: api.CollectorSending,
				Since: r.Now.Add(-time.Hour), Lost: 3}}}
		change(&sw)
		r.Flows = &api.FlowStatus{Switches: []api.FlowSwitch{sw}}
	}
}

func flowCases() []ruleCase {
	lose := func(n uint64) func(*api.FlowSwitch) {
		return func(sw *api.FlowSwitch) {
			sw.Losses = []api.FlowLoss{{Port: "a", FlowCounts: api.FlowCounts{Packets: 2}},
				{Port: "b", FlowCounts: api.FlowCounts{Packets: n}}}
		}
	}
	away := func(r *rig, since time.Duration) func(*api.FlowSwitch) {
		return func(sw *api.FlowSwitch) {
			sw.Collectors[0].State, sw.Collectors[0].Since, sw.Collectors[0].LastError = "resolving", r.Now.Add(
				-since), "no such host"
		}
	}
	fits := metering(func(*api.FlowSwitch) {})
	return []ruleCase{
		{rule: "flow-room", provoke: metering(lose(1200)), near: fits, object: "switch lab",
			sign: "1,202 packets in no flow record since they were connected, most of them seen at b",
			fix:  "maxFlows: 2000", level: api.FindingWrong},
		{rule: "flow-room", provoke: metering(func(sw *api.FlowSwitch) { sw.Overflow.Packets = 5 }), near: fits,
			object: "switch lab", sign: "5 packets of flows that did not fit into the table of 1000",
			fix: "maxFlows: 2000", level: api.FindingWrong},
		{rule: "flow-room", provoke: metering(func(sw *api.FlowSwitch) {
			sw.Overflow.Packets, sw.MaxFlows = 5, 4_000_000
		}), near: fits, object: "switch lab", sign: "5 packets", fix: "heddle flows top", level: api.FindingWrong},
		{rule: "flow-collector", provoke: func(r *rig) { metering(away(r, time.Minute))(r) }, near: func(r *rig) {
			metering(away(r, 29*time.Second))(r)
		}, object: "switch lab",
			sign: "collector 192.0.2.9:4739 is resolving for 1m0s: no such host; 3 records lost",
			fix:  "heddle flows status", level: api.FindingWrong},
	}
}

func TestFlowsOfAWindowAreThoseThatWereLostInIt(t *testing.T) {
	read := func(overflow, a, b uint64) *api.FlowStatus {
		return &api.FlowStatus{Switches: []api.FlowSwitch{{Switch: "lab", MaxFlows: 9,
			Overflow: api.FlowCounts{Packets: overflow},
			Losses: []api.FlowLoss{{Port: "a", FlowCounts: api.FlowCounts{Packets: a}},
				{Port: "b", FlowCounts: api.FlowCounts{Packets: b}}}}}}
	}
	got := FlowsSince(read(5, 3, 4), read(7, 3, 10))
	want := &api.FlowStatus{Switches: []api.FlowSwitch{{Switch: "lab", MaxFlows: 9,
		Overflow: api.FlowCounts{Packets: 2},
		Losses:   []api.FlowLoss{{Port: "b", FlowCounts: api.FlowCounts{Packets: 6}}}}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if FlowsSince(nil, want) != want {
		t.Error("without a reading before it, one counts as it is")
	}
}
