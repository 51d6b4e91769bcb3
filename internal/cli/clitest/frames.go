package clitest

import (
	"net/netip"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// CapturedFrames returns the records of a frame that is delivered, one that is dropped, and one of the host's own.
func CapturedFrames() []api.CaptureEvent {
	frame := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, 46)...)
	at := func(n int, f api.CaptureFrame) api.CaptureEvent {
		f.Time, f.Length, f.Data = time.Date(2026, 1, 2, 3, 4, 5, n*1000, time.Local), 60, frame
		return api.CaptureEvent{Frame: &f}
	}
	ten := plan.SegmentOf(10, false)
	inside := ten.In(5000)
	return []api.CaptureEvent{
		{Started: &api.CaptureStarted{ID: 3}},
		{Port: &api.CapturePort{Number: 1, Switch: "lab", Name: "vm1/eth0"}},
		at(1, api.CaptureFrame{Port: 1, Stage: api.StageAdmit, Segment: ten}),
		{Port: &api.CapturePort{Number: 2, Switch: "lab", Name: "vm2/eth0"}},
		at(2, api.CaptureFrame{Port: 2, Other: 1, Stage: api.StageDeliver, Copy: true, Segment: ten,
			SegmentSize: 1448}),
		at(3, api.CaptureFrame{Port: 1, Stage: api.StageDrop, Reason: "forged-transmit"}),
		at(4, api.CaptureFrame{Port: 2, Other: 1, Stage: api.StageDrop, Reason: "receiver-down", Copy: true,
			Segment: plan.SegmentOf(10, true)}),
		{Port: &api.CapturePort{Number: 5, Switch: "lab", Name: "uplink1", Uplink: true}},
		at(5, api.CaptureFrame{Port: 5, Other: 5, Stage: api.StageDeliver, Copy: true, ToHost: true,
			Segment: plan.SegmentOf(0, false)}),
		at(6, api.CaptureFrame{Port: 5, Stage: api.StageAdmit, FromHost: true, Segment: ten}),
		at(7, api.CaptureFrame{Port: 2, Other: 5, Stage: api.StageDeliver, Copy: true, FromHost: true, Segment: ten}),
		at(8, api.CaptureFrame{Other: 1, Stage: api.StageDrop, Reason: "no-uplink", Copy: true, Segment: ten}),
		{Port: &api.CapturePort{Number: 6, Switch: "lab", Name: "tunnel", Uplink: true}},
		at(9, api.CaptureFrame{Port: 6, Other: 1, Stage: api.StageDeliver, Copy: true, Segment: inside,
			Remote: netip.MustParseAddr("192.0.2.2"), Local: netip.MustParseAddr("192.0.2.1")}),
		at(10, api.CaptureFrame{Port: 6, Stage: api.StageDrop, Reason: "tunnel-unknown-endpoint", Segment: inside,
			Remote: netip.MustParseAddr("2001:db8::7"), Local: netip.MustParseAddr("2001:db8::1")}),
		at(11, api.CaptureFrame{Port: 6, Stage: api.StageAdmit, Made: true,
			Segment: plan.SegmentOf(0, false).In(5000)}),
		{Counts: &api.CaptureCounts{Selected: 13, Lost: 2, Ended: api.CaptureAsked}},
	}
}
