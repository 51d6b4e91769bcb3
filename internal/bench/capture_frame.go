package bench

import (
	"context"
	"fmt"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/pcapfilter"
	"heddle/internal/report"
)

// repeatCaptured is as often as a frame can be captured, twice each time, before the ring is full.
const repeatCaptured = 20_000

// captureFrames are the program's times per frame, by the state's name, in seconds.
type captureFrames map[string][]float64

// measureFrames measures the kernel program alone on a known unicast frame, by repeated test runs, with the same captures as the
// guests' traffic.
func measureFrames(ctx context.Context, rounds int) (frames captureFrames, err error) {
	b, err := dataplane.NewFrameBench(1)
	if err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, b.Close()) }()
	d, err := desired(3, access100(), false, nowhere)
	if err != nil {
		return nil, err
	}
	if err := b.Apply(d); err != nil {
		return nil, err
	}
	frames = captureFrames{}
	for range rounds {
		for _, s := range captureStates() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t, err := measureFrame(ctx, b, s)
			if err != nil {
				return nil, fmt.Errorf("frames, capture %s: %w", s.name, err)
			}
			frames[s.name] = append(frames[s.name], t.Seconds())
		}
	}
	return frames, nil
}

func measureFrame(ctx context.Context, b *dataplane.FrameBench, s captureState) (t time.Duration, err error) {
	frame := benchFrame(portMAC(1), portMAC(0))
	copy(frame[12:], "\x08\x00\x45\x00\x00\x2e\x00\x00\x00\x00\x40\x06") // TCP over IPv4, for the filter to look into
	if s.args == nil {
		return b.One(portID(0), frame, repeatCaptured)
	}
	selection, err := s.selection(ctx)
	if err != nil {
		return 0, err
	}
	drain, end, err := b.Capture(selection)
	if err != nil {
		return 0, err
	}
	defer func() { err = orLeft(err, end()) }()
	if _, err := b.One(portID(0), frame, repeatCaptured/10); err != nil { // fills the caches
		return 0, err
	}
	if err := drain(); err != nil {
		return 0, err
	}
	return b.One(portID(0), frame, repeatCaptured)
}

// selection is what the agent makes of the state's arguments.
func (s captureState) selection(ctx context.Context) (dataplane.Selection, error) {
	out := dataplane.Selection{Stages: []int{abi.CaptureAdmit, abi.CaptureDeliver, abi.CaptureDrop}, Snap: abi.MaxSnap}
	if s.snap > 0 {
		out.Snap = s.snap
	}
	if s.segment > 0 {
		out.Switch, out.Segments = "bench", []dataplane.Segment{{VLAN: s.segment}}
	}
	if s.filter == "" {
		return out, nil
	}
	program, err := pcapfilter.Compile(ctx, s.filter)
	for _, in := range program {
		out.Filter = append(out.Filter, abi.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue, JumpFalse: in.JumpFalse, K: in.K})
	}
	return out, err
}

// rows are one for each state.
func (f captureFrames) rows() (rows []report.Row) {
	for _, s := range captureStates() {
		rows = append(rows, report.Row{
			{Name: "test", Value: "program"},
			{Name: "capture", Value: s.name},
			{Name: "unit", Value: string(report.Seconds), Hidden: true},
			{Name: "value", Title: "median (quartiles)", Value: report.Summarise(f[s.name]), Unit: report.Seconds},
			{Name: "ratio_off", Title: "of off", Value: report.Summarise(report.Ratios(f[s.name], f[captureOff])), Unit: report.Ratio},
			{Name: "cpu_s", Title: "CPU", Value: nil}, {Name: "cpu_per", Value: "frame", Hidden: true}, {Name: "cpu_ratio_off", Title: "CPU of off", Value: nil},
			{Name: "lost", Title: "lost", Value: nil}, {Name: "samples", Value: f[s.name], Hidden: true},
		})
	}
	return rows
}
