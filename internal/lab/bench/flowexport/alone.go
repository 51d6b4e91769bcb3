package flowexport

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"heddle/internal/lab/report"
)

// aloneSample is what the machine used while nothing but the background ran, and just before and after that, in cores.
type aloneSample struct{ idle, scan float64 }

// aloneTurns is how often that is measured.
const aloneTurns = 5

// measureAlone measures what the background takes without metering and without any other load.
func (r *run) measureAlone(ctx context.Context) error {
	if !slices.ContainsFunc(r.configs, func(c configuration) bool { return c.background }) {
		return nil
	}
	if err := r.meter(ctx, off, true); err != nil {
		return err
	}
	say := func(turn int) {
		if r.opts.Progress != nil {
			r.opts.Progress(turn, aloneTurns, "the background alone")
		}
	}
	say(0)
	before, err := r.rig.busy(ctx, r.opts.Duration)
	if err != nil {
		return err
	}
	for turn := range aloneTurns {
		say(turn)
		scan, err := r.scanAlone(ctx)
		if err != nil {
			return fmt.Errorf("flows in the background: %w", err)
		}
		after, err := r.rig.busy(ctx, r.opts.Duration)
		if err != nil {
			return err
		}
		r.alone = append(r.alone, aloneSample{idle: (before + after) / 2, scan: scan})
		before = after
	}
	return nil
}

// scanAlone is how many cores are busy while the background runs.
func (r *run) scanAlone(ctx context.Context) (cores float64, err error) {
	b := r.rig.startBackground(ctx)
	defer func() {
		if _, endErr := b.end(); err == nil {
			err = endErr
		}
	}()
	if err := pause(ctx, r.opts.Warmup); err != nil {
		return 0, err
	}
	return r.rig.busy(ctx, r.opts.Duration)
}

// busy is how many cores of the machine are busy during a time.
func (r *rig) busy(ctx context.Context, d time.Duration) (cores float64, err error) {
	var s sample
	if err := r.interval(ctx, &s, d); err != nil {
		return 0, err
	}
	return s.machine.Seconds() / s.took.Seconds(), nil
}

// aloneRow is what the background alone takes; none without a background. Both hosts share the CPUs: the share of all of
// them is that of each host's half.
func (r *run) aloneRow() []report.Row {
	if len(r.alone) == 0 {
		return nil
	}
	var cores, share []float64
	for _, s := range r.alone {
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
