package flowexport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heddle/internal/lab"
	"heddle/internal/report"
	"heddle/internal/traffic"
)

// at names a cell in a configuration.
type at struct{ cell, configuration string }

// source is a host under a metering.
type source struct {
	metering metering
	side     side
}

// run is a benchmark under way.
type run struct {
	opts     Options
	rig      *rig
	cells    []cell
	configs  []configuration
	samples  map[at][]sample // by round
	scans    []traffic.Scanned
	exported map[source]exported
	accounts accounts
	// unmetered says that there may be flows in the background that no metering in force has seen.
	unmetered bool
	rounds    int // that are complete
}

// vmNice is the priority of VMs, below the kernel's own threads: VMs that keep all CPUs busy with short turns leave next to nothing to RCU's,
// for which draining waits, and what draining and exporting cost would be in no rate.
const vmNice = 5

// Run measures all that is selected. In a round each cell is measured in all configurations, those with and without flows in the
// background each close together, in an order that rotates: what disturbs the machine disturbs both sides of a ratio alike. It leaves
// nothing behind, also when ctx ends.
func Run(ctx context.Context, o Options) (rep *report.Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.measure == nil {
		o.measure = traffic.Processes{Program: []string{o.Heddle, "traffic"}, Nice: vmNice}.Measure
	}
	r := &run{opts: o, samples: map[at][]sample{}, exported: map[source]exported{}}
	if r.cells, err = o.cells(); err != nil {
		return nil, err
	}
	if r.configs, err = o.configurations(); err != nil {
		return nil, err
	}
	env := report.Collect(o.Now())
	most := slices.MaxFunc(r.cells, func(a, b cell) int { return a.pairs - b.pairs }).pairs
	if r.rig, err = build(ctx, o, most); err == nil {
		err = errors.Join(r.measure(ctx), r.rig.close())
	}
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, lab.ErrLeft) && !errors.Is(err, lab.ErrAccounts): // whatever was under way says only that it was ended
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return r.report(env), nil
}

// measure fills the samples, a round after the other, until there are enough or it is too late to begin another.
func (r *run) measure(ctx context.Context) error {
	began := time.Now()
	for round := range r.opts.Rounds {
		if used := time.Since(began); round > 0 && r.opts.Limit > 0 && used+used/time.Duration(round) > r.opts.Limit {
			break
		}
		for i := range r.cells {
			c := r.cells[(i+round)%len(r.cells)]
			for k := range 2 {
				background := (k+round)%2 == 1
				if err := r.under(ctx, round, c, background); err != nil {
					return fmt.Errorf("round %d, %s: %w", round+1, c, err)
				}
			}
		}
		r.rounds++
	}
	var err error
	if r.accounts, err = r.rig.accounts(ctx); err != nil {
		return err
	}
	r.rig.ending = true // what is left of flows is exported before the lab goes
	return r.meter(ctx, off, true)
}

// under measures a cell in all configurations with or without the background.
func (r *run) under(ctx context.Context, round int, c cell, with bool) (err error) {
	var configs []configuration
	for _, cfg := range r.configs {
		if cfg.background == with {
			configs = append(configs, cfg)
		}
	}
	if len(configs) == 0 {
		return nil
	}
	if with {
		b := r.rig.startBackground(ctx)
		r.unmetered = true
		defer func() {
			scan, endErr := b.end()
			if endErr != nil {
				endErr = fmt.Errorf("flows in the background: %w", endErr)
			}
			if err = errors.Join(err, endErr); err == nil {
				r.scans = append(r.scans, scan)
			}
		}()
	}
	for i := range configs {
		cfg := configs[(i+round)%len(configs)]
		r.progress(round, c, cfg)
		if err := r.in(ctx, c, cfg); err != nil {
			return fmt.Errorf("%s: %w", cfg.name(), err)
		}
	}
	return nil
}

// in measures a cell in a configuration.
func (r *run) in(ctx context.Context, c cell, cfg configuration) error {
	r.unmetered = r.unmetered || r.rig.metering != cfg.metering
	warmup, _ := c.times(r.opts, cfg.metering)
	// A warm-up that lets flows end has time for what those before have left.
	if err := r.meter(ctx, cfg.metering, warmup < r.opts.Settle); err != nil {
		return err
	}
	if r.unmetered && cfg.background && cfg.metering != off {
		if err := r.rig.cycle(ctx, warmup); err != nil { // in the interval all of its flows are metered
			return err
		}
		r.unmetered = false
	}
	s, err := r.rig.one(ctx, c)
	r.rig.ending = r.rig.ending || c.endsFlows() && cfg.metering != off
	if err == nil {
		where := at{c.id(), cfg.name()}
		r.samples[where] = append(r.samples[where], s)
	}
	return err
}

// meter changes the metering and counts what was exported under the one before.
func (r *run) meter(ctx context.Context, m metering, clean bool) error {
	before := r.rig.metering
	if err := r.rig.meter(ctx, m, clean); err != nil {
		return err
	}
	for _, s := range sides {
		sum := r.exported[source{before, s}]
		sum.add(r.rig.collectors[s].since())
		r.exported[source{before, s}] = sum
	}
	return nil
}

func (r *run) progress(round int, c cell, cfg configuration) {
	if r.opts.Progress == nil {
		return
	}
	done := 0
	for _, s := range r.samples {
		done += len(s)
	}
	r.opts.Progress(done, r.opts.Rounds*len(r.cells)*len(r.configs), fmt.Sprintf("round %d of %d: %s, %s", round+1, r.opts.Rounds, c, cfg.name()))
}
