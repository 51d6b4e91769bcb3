package flowexport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// at identifies a cell in a configuration.
type at struct{ cell, configuration string }

// source is a host under a metering.
type source struct {
	metering metering
	side     side
}

// run is a running benchmark.
type run struct {
	opts     Options
	rig      *rig
	cells    []cell
	configs  []configuration
	samples  map[at][]sample
	visits   map[string]visits // by cell
	began    time.Time         // the first of them
	scans    []traffic.Scanned
	alone    alone
	exported map[source]exported
	accounts accounts
	spreads  spreads
}

// vmNice is the priority of VMs, below that of the kernel's own threads. VMs that keep all CPUs busy with short turns
// would leave next to nothing to RCU's threads, for which draining waits, and no rate would include the cost of
// draining and exporting.
const vmNice = 5

// Run measures everything selected. Each round visits every cell once: its configurations are measured in two series,
// without and with flows in the background, each between two baselines. Cells whose comparisons are resolved are left
// out of further rounds, so that the others get the time. It leaves nothing behind, also when ctx ends.
func Run(ctx context.Context, o Options) (rep *report.Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.measure == nil {
		o.measure = traffic.Processes{Program: []string{o.Heddle, "traffic"}, Nice: vmNice}.Measure
	}
	if o.guestsWanted() {
		o.noGuests = guestsCannotRun(ctx)
	}
	r := &run{opts: o, samples: map[at][]sample{}, visits: map[string]visits{}, exported: map[source]exported{},
		spreads: spreads{}}
	if r.cells, err = o.cells(); err != nil {
		return nil, err
	}
	if r.configs, err = o.configurations(); err != nil {
		return nil, err
	}
	env := report.Collect(o.Now())
	fleet, err := fleetOf(r.cells)
	if err != nil {
		return nil, err
	}
	if r.rig, err = build(ctx, o, fleet); err == nil {
		err = errors.Join(r.measure(ctx), r.rig.close())
	}
	switch {
	// errors then only say that the run was ended
	case err != nil && ctx.Err() != nil && !errors.Is(err, lab.ErrLeft) && !errors.Is(err, lab.ErrAccounts):
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return r.report(env), nil
}

// measure takes samples, round by round, until there are enough or there is no time for any cell.
func (r *run) measure(ctx context.Context) error {
	if len(r.with(true)) > 0 { // no cell has begun, and nothing is metered
		if err := r.alone.measure(ctx, r.rig); err != nil {
			return err
		}
	}
	r.began = time.Now()
	for round := range r.opts.Rounds {
		for i := range r.cells {
			c := r.cells[(i+round)%len(r.cells)]
			if r.enough(c) || !r.timeFor(c) {
				continue
			}
			if err := r.visit(ctx, round, i, c); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, c, err)
			}
		}
	}
	var err error
	if r.accounts, err = r.rig.accounts(ctx); err != nil {
		return err
	}
	r.rig.ending = true // so that remaining flows are exported before the lab is removed
	return r.meter(ctx, off, true)
}

// with are the configurations with or without flows in the background, their baseline first.
func (r *run) with(background bool) []configuration {
	return slices.DeleteFunc(slices.Clone(r.configs), func(c configuration) bool { return c.background != background })
}

// visit measures a cell in all configurations, in one series each with and without the background.
func (r *run) visit(ctx context.Context, round, index int, c cell) error {
	began := time.Now()
	for k := range 2 {
		background := (k+round)%2 == 1
		configs := r.with(background)
		if len(configs) == 0 {
			continue
		}
		say := func(cfg configuration) { r.progress(round, index, c, cfg) }
		if err := r.series(ctx, round, c, order(configs, round, c.turns(r.opts)), say); err != nil {
			return err
		}
	}
	r.visits[c.id()] = visits{r.visits[c.id()].count + 1, time.Since(began)}
	return nil
}

// series measures a cell in the configurations, one after the other, and stores the results. The load and the flows in
// the background run throughout.
func (r *run) series(ctx context.Context, round int, c cell, configs []configuration, say func(configuration)) (
	err error) {
	if configs[0].background {
		b := r.rig.startBackground(ctx)
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
	if err := r.meter(ctx, off, true); err != nil {
		return err
	}
	rest, err := r.rig.wake(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rest()) }()
	addQueues, err := r.rig.watchQueues(ctx, c)
	if err != nil {
		return err
	}
	load, startErr := r.rig.startSteady(ctx, c)
	if startErr != nil {
		return startErr
	}
	defer func() { err = errors.Join(err, load.end()) }()
	found := make([]taken, 0, len(configs))
	for _, cfg := range configs {
		say(cfg)
		s, err := r.in(ctx, load, cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", cfg.name(), err)
		}
		s.round = round
		found = append(found, taken{cfg, s})
	}
	r.keep(c, found)
	sum := r.spreads[c.id()]
	err = addQueues(&sum)
	r.spreads[c.id()] = sum
	return err
}

// keep adds a series to the samples.
func (r *run) keep(c cell, series []taken) {
	neighbours(series)
	for _, t := range series {
		where := at{c.id(), t.name()}
		r.samples[where] = append(r.samples[where], t.sample)
	}
}

// in measures in a configuration. A baseline begins when all flows metered before it are exported, so that no work of
// metering falls into an interval without metering.
func (r *run) in(ctx context.Context, load *steady, cfg configuration) (sample, error) {
	if err := r.meter(ctx, cfg.metering, cfg.metering == off); err != nil {
		return sample{}, err
	}
	r.rig.ending = r.rig.ending || cfg.metering.meters()
	return load.sample(load.cell.times(r.opts, cfg))
}

// meter changes the metering and counts what was exported under the previous one.
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

// progress shows what is being measured, and how much time is left.
func (r *run) progress(round, index int, c cell, cfg configuration) {
	if r.opts.Progress == nil {
		return
	}
	used, left := time.Since(r.began), r.left(round, index)
	text := fmt.Sprintf("round %d: %s, %s; some %v left at most", round+1, c, cfg.name(), left.Round(10*time.Second))
	r.opts.Progress(int(used.Seconds()), 2+int((used+left).Seconds()), text)
}
