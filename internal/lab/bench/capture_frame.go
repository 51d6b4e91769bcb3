package bench

import (
	"context"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/lab/report"
)

// repeatCaptured is as often as a frame can be captured, at each stage it passes, before the ring is full.
const repeatCaptured = 20_000

// captureFrames measures the kernel program alone on a known unicast frame, by repeated test runs, in the same states
// as the guests' traffic and some more.
type captureFrames struct{ bench *dataplane.FrameBench }

func newCaptureFrames() (*captureFrames, error) {
	b, err := dataplane.NewFrameBench(1)
	if err != nil {
		return nil, err
	}
	f := &captureFrames{bench: b}
	d, err := desired(3, access100(), false, nowhere)
	if err == nil {
		err = b.Apply(d)
	}
	if err != nil {
		return nil, orLeft(err, b.Close())
	}
	return f, nil
}

func (f *captureFrames) close() error { return f.bench.Close() }

// measure is the time of one frame while the state's capture runs.
func (f *captureFrames) measure(ctx context.Context, s captureState) (t time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	frame := benchFrame(portMAC(1), portMAC(0))
	copy(frame[12:], "\x08\x00\x45\x00\x00\x2e\x00\x00\x00\x00\x40\x06") // TCP over IPv4, for the filter to look into
	drain := func() error { return nil }
	if !s.off() {
		selection, err := s.selection(ctx)
		if err != nil {
			return 0, err
		}
		var end func() error
		if drain, end, err = f.bench.Capture(selection); err != nil {
			return 0, err
		}
		defer func() { err = orLeft(err, end()) }()
	}
	if _, err := f.bench.One(portID(0), frame, repeatCaptured/10); err != nil { // fills the caches
		return 0, err
	}
	if err := drain(); err != nil {
		return 0, err
	}
	return f.bench.One(portID(0), frame, repeatCaptured)
}

// frameTimes are the program's times in a state, round by round.
func (r *captureRun) frameTimes(state string) []float64 {
	var v []float64
	for _, m := range r.rounds {
		v = append(v, m.frames[state])
	}
	return v
}

// programRows are the program's times, one row for each state.
func (r *captureRun) programRows() (rows []report.Row) {
	off := r.frameTimes(captureOff)
	for _, s := range programStates() {
		v := r.frameTimes(s.name)
		rows = append(rows, captureRow("program", s.name, v, report.Ratios(v, off)))
	}
	return rows
}

// costRows are what the program's times come to for each thing it does, from the differences within the rounds.
func (r *captureRun) costRows() (rows []report.Row) {
	for _, c := range []struct {
		name     string
		with, by string
		times    float64
	}{
		{"a stage of a frame that is not selected", captureElse, captureOff, stagesPassed},
		{"an instruction of a filter", captureLong(), captureShort, stagesPassed * (longFilter - 1)},
		{"a frame or copy captured", captureAll, captureElse, stagesPassed},
	} {
		v := difference(r.frameTimes(c.with), r.frameTimes(c.by))
		for i := range v {
			v[i] /= c.times
		}
		rows = append(rows, captureRow("cost", c.name, v, nil))
	}
	return rows
}

// captureRow is a row of the program's, which has none of the columns that only traffic has.
func captureRow(test, what string, v, ratios []float64) report.Row {
	return report.Row{
		{Name: "test", Value: test},
		{Name: "capture", Value: what},
		{Name: "unit", Value: string(report.Seconds), Hidden: true},
		{Name: "value", Title: "median (quartiles)", Value: report.Summarise(v), Unit: report.Seconds},
		{Name: "ratio_off", Title: "of off", Value: report.Summarise(ratios), Unit: report.Ratio},
		{Name: "cpu_s", Title: "CPU", Value: nil},
		{Name: "cpu_per", Value: "frame", Hidden: true},
		{Name: "cpu_ratio_off", Title: "CPU of off", Value: nil},
		{Name: "lost", Title: "lost", Value: nil},
		{Name: "samples", Value: v, Hidden: true},
	}
}
