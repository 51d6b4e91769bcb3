package flowexport

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"heddle/internal/lab/report"
)

// aloneSample is what the machine used while nothing but the background ran, and just before and after that, in cores.
type aloneSample struct{ idle, scan float64 }

// alone is what the background takes without metering and without any other load.
type alone struct{ samples []aloneSample }

// aloneTurns is how often that is measured.
const aloneTurns = 5

// measure measures it on hosts that meter nothing.
func (a *alone) measure(ctx context.Context, r *rig) error {
	say := func(turn int) {
		if r.opts.Progress != nil {
			r.opts.Progress(turn, aloneTurns, "the background alone")
		}
	}
	say(0)
	before, err := r.busy(ctx, r.opts.Duration)
	if err != nil {
		return err
	}
	for turn := range aloneTurns {
		say(turn)
		scan, err := scanAlone(ctx, r)
		if err != nil {
			return fmt.Errorf("flows in the background: %w", err)
		}
		after, err := r.busy(ctx, r.opts.Duration)
		if err != nil {
			return err
		}
		a.samples = append(a.samples, aloneSample{idle: (before + after) / 2, scan: scan})
		before = after
	}
	return nil
}

// scanAlone is how many cores are busy while the background runs.
func scanAlone(ctx context.Context, r *rig) (cores float64, err error) {
	b := r.startBackground(ctx)
	defer func() {
		if _, endErr := b.end(); err == nil {
			err = endErr
		}
	}()
	if err := pause(ctx, r.opts.Warmup); err != nil {
		return 0, err
	}
	return r.busy(ctx, r.opts.Duration)
}

// busy is how many cores of the machine are busy during a time.
func (r *rig) busy(ctx context.Context, d time.Duration) (cores float64, err error) {
	var s sample
	if err := r.interval(ctx, &s, d); err != nil {
		return 0, err
	}
	return s.machine.Seconds() / s.took.Seconds(), nil
}

// row is the row of it; none where it was not measured. Both hosts share the CPUs: the share of all of
// them is that of each host's half.
func (a *alone) row() []report.Row {
	if len(a.samples) == 0 {
		return nil
	}
	var cores, share []float64
	for _, s := range a.samples {
		cores = append(cores, s.scan-s.idle)
		share = append(share, 100*(s.scan-s.idle)/float64(runtime.NumCPU()))
	}
	return []report.Row{{
		{Name: "row", Title: "cell ×pairs, configuration", Value: "background alone", TableOnly: true},
		{Name: "cell", Value: "background", Hidden: true},
		{Name: "pairs", Value: 0, Hidden: true},
		{Name: "configuration", Value: configuration{off, true}.name(), Hidden: true},
		{Name: "background_cores", Title: "cores of background", Value: report.Summarise(cores)},
		{Name: "background_percent", Title: "CPU", Value: report.Summarise(share), Unit: report.Percent},
		{Name: "background_percent_published", Title: "article's", Value: float64(publishedBackground),
			Unit: report.Percent},
	}}
}
