package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/report"
)

// FrameOptions are the options of "heddle bench frame".
type FrameOptions struct {
	// Rounds is how often every cell is measured, interleaved; at least 1, and 10 for published numbers.
	Rounds int
	// Quick leaves out the broadcast to 1,000 ports, whose devices take a while to make.
	Quick bool
	// Progress is called before every round; nil for silence.
	Progress func(done, total int, what string)
	Now      func() time.Time
}

// frameCell is one kind of frame, measured by repeated test runs of the program in the kernel.
type frameCell struct {
	name string
	// receivers is how many copies of the frame are made; 0 for cells that measure no frame.
	receivers int
	measure   func() (time.Duration, error)
	samples   []float64 // seconds per frame
}

// Frame measures the kernel time of the switch program per frame. It leaves nothing behind, also when ctx ends.
func Frame(ctx context.Context, opts FrameOptions) (rep *report.Report, err error) {
	if opts.Rounds < 1 {
		return nil, errors.New("rounds must be positive")
	}
	ns, err := netns.New(fmt.Sprintf("hb%d-frame", os.Getpid()))
	if err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, ns.Delete()) }()
	env := report.Collect(opts.Now())
	err = ns.Do(func() (err error) {
		free, err := holdCPU()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, free()) }()
		rig, err := newFrameRig(ctx, opts.Quick)
		if err != nil {
			return err
		}
		defer func() { err = orLeft(err, rig.close()) }()
		if err := rig.run(ctx, opts); err != nil {
			return err
		}
		rep = rig.report(env)
		return nil
	})
	return rep, err
}

// run measures the cells in turn, round by round, so that a disturbance of the machine affects all alike.
func (r *frameRig) run(ctx context.Context, opts FrameOptions) error {
	for round := range opts.Rounds + 1 {
		if opts.Progress != nil {
			opts.Progress(round, opts.Rounds+1, "round of frames")
		}
		for _, c := range r.cells {
			if err := ctx.Err(); err != nil {
				return err
			}
			d, err := c.measure()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 { // the first fills the caches
				c.samples = append(c.samples, d.Seconds())
			}
		}
	}
	return r.checkCounters()
}

// checkCounters makes sure that the frames took the intended path: none was refused or dropped.
func (r *frameRig) checkCounters() error {
	for _, b := range r.benches {
		counters, err := b.Counters()
		if err != nil {
			return err
		}
		for id, c := range counters {
			if c.Dropped() > 0 || c.PacketsOutDropped() > 0 {
				return fmt.Errorf("port %s dropped %v and refused %v during the measurement: its numbers would mean "+
					"nothing", id, c.Drops, c.Refused)
			}
		}
	}
	return nil
}

const (
	cellEmpty      = "empty program"
	cellKnown      = "known unicast"
	cellLearned    = "learned unicast"
	cellUnknown    = "unknown unicast to the uplink"
	cellStorm      = "unknown unicast that storm control stops"
	cellFewHarness = "harness alone, 2 frames"
	cellFew        = "learned unicast, 2 MACs and 3 ports"
	cellManyBase   = "harness alone, 1,000 frames"
	cellMany       = "learned unicast, 1,000 of 100,000 MACs, 1,000 ports"
	cellAllBase    = "harness alone, 100,000 frames"
	cellAll        = "learned unicast, all of 100,000 MACs, 1,000 ports"
)

func (r *frameRig) report(env report.Environment) *report.Report {
	rep := &report.Report{Name: "bench frame", Environment: env}
	for _, c := range r.cells {
		row := report.Row{
			{Name: "frame", Value: c.name},
			{Name: "time", Title: "per frame (quartiles)", Value: report.Summarise(c.samples), Unit: report.Seconds},
		}
		if c.receivers > 0 {
			per := make([]float64, len(c.samples))
			for i, s := range c.samples {
				per[i] = s / float64(c.receivers)
			}
			row = append(row, report.Field{Name: "per_receiver", Title: "per receiver",
				Value: report.Summarise(per).Median, Unit: report.Seconds})
		}
		rep.Rows = append(rep.Rows, append(row, report.Field{Name: "samples", Value: c.samples, Hidden: true}))
	}
	known := report.Summarise(r.samples(cellKnown))
	few, many := difference(r.samples(cellFew), r.samples(cellFewHarness)), difference(r.samples(cellMany),
		r.samples(cellManyBase))
	all := difference(r.samples(cellAll), r.samples(cellAllBase))
	empty := report.Summarise(r.samples(cellEmpty))
	// The time of an empty program is part of a frame's time in a tested program.
	ratio := report.Summarise(report.Ratios(add(many, empty.Median), add(few, empty.Median)))
	rep.Budgets = []report.Budget{
		report.Hold("known unicast, all checks and counters on", known.Median, report.Seconds, report.AtMost, 80e-9),
		report.Hold("100,000 MACs and 1,000 ports, over 1,000 of them / few", ratio.Median, report.Ratio, report.AtMost,
			1.3),
	}
	rep.Notes = []string{
		fmt.Sprintf("An empty program takes %s here, which every time above includes; known unicast takes %s more.",
			report.Seconds.Format(empty.Median), report.Seconds.Format(known.Median-empty.Median)),
		fmt.Sprintf("Over 1,000 of the MACs a frame takes %s times what it takes among few (quartiles %.2f–%.2f); "+
			"over all 100,000, where memory latency decides, %s times. The harness that writes each frame's "+
			"addresses is measured alone and taken off.",
			report.Ratio.Format(ratio.Median), ratio.Q1, ratio.Q3,
			report.Ratio.Format(report.Summarise(report.Ratios(add(all, empty.Median),
				add(few, empty.Median))).Median)),
		"Broadcasts are really sent, to devices whose other end takes them; that delivery is in their time. Unicast " +
			"is measured up to the verdict.",
	}
	r.reportMetering(rep, empty.Median)
	return rep
}

func (r *frameRig) samples(name string) []float64 {
	for _, c := range r.cells {
		if c.name == name {
			return c.samples
		}
	}
	return nil
}

func difference(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

func add(a []float64, x float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + x
	}
	return out
}

// benchFrame is a minimal frame of an experimental type, so that no stack answers it.
func benchFrame(dst, src [6]byte) []byte {
	f := make([]byte, 60)
	copy(f, dst[:])
	copy(f[6:], src[:])
	f[12], f[13] = 0x88, 0xb5
	return f
}

func (r *frameRig) close() error {
	var errs []error
	for _, b := range r.benches {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// bench opens another set of tables.
func (r *frameRig) bench(frames int) (*dataplane.FrameBench, error) {
	b, err := dataplane.NewFrameBench(frames)
	if err == nil {
		r.benches = append(r.benches, b)
	}
	return b, err
}
