package flowexport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/cputime"
	"heddle/internal/traffic"
)

// sample is what one measurement found.
type sample struct {
	// rate is that of all pairs together, in the load's unit; lost the part of what was sent that did not arrive, where that is counted.
	rate, lost float64
	// runs are those of a host's programs within a window of the warm-up, and watched the frames that passed in it.
	runs    [len(sides)]runs
	watched [len(sides)]frames
	// middle is that of the measured interval, and took its length. passed are the frames in it, agents is the CPU time of the hosts'
	// agents, machine that of everything, and records are what the hosts exported.
	middle        time.Time
	took, machine time.Duration
	passed        [len(sides)]frames
	agents        [len(sides)]time.Duration
	records       [len(sides)]uint64
	// results are those of the pairs, for loads of their own time.
	results []traffic.Result
	// before and after are the baselines next to it, round is that of its series.
	before, after *sample
	round         int
}

const (
	attempts = 3
	// lead is how long the ends of a measurement have to start, for each of them and together.
	leadEach, leadAll = 15 * time.Millisecond, 100 * time.Millisecond
	// The programs are timed for watchTime or the last two thirds of the warm-up, whichever is shorter, but for the last unwatch of it.
	watchTime = 300 * time.Millisecond
	unwatch   = 30 * time.Millisecond
)

// one measures a cell as the hosts are configured. Ends that were not ready in time are started again with more of it.
func (r *rig) one(ctx context.Context, c cell) (s sample, err error) {
	lead := leadAll + time.Duration(2*c.pairs)*leadEach
	for range attempts {
		if s, err = r.attempt(ctx, c, lead); err == nil || !late(err) {
			return s, err
		}
		lead *= 2
	}
	return s, err
}

// late says whether an end was, also one that is a process and told so in words.
func late(err error) bool {
	return errors.Is(err, traffic.ErrLate) || strings.Contains(err.Error(), traffic.ErrLate.Error())
}

func (r *rig) attempt(ctx context.Context, c cell, lead time.Duration) (sample, error) {
	load := traffic.Load{Kind: c.kind, Size: c.size, Sessions: c.sessions}
	if c.endsFlows() {
		load.Addresses = serverAddresses
	}
	load.Warmup, load.Duration = c.times(r.opts, r.metering)
	load.Begin = time.Now().Add(lead + load.Warmup)
	s := sample{results: make([]traffic.Result, c.pairs)}
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.pairs {
		group.Go(func() (err error) {
			client, server := c.cpus(i, r.cpus)
			s.results[i], err = r.opts.measure(ctx, r.pair(i+1, client, server), load)
			return err
		})
	}
	group.Go(func() error { return r.watch(ctx, load, &s) })
	if err := group.Wait(); err != nil {
		return s, err
	}
	for _, res := range s.results {
		s.rate += c.value(res)
	}
	if s.rate <= 0 {
		return s, fmt.Errorf("%s: nothing arrived", c)
	}
	return s, nil
}

// watch times the programs in the warm-up, and takes what the interval used.
func (r *rig) watch(ctx context.Context, load traffic.Load, s *sample) error {
	look := watchFor(load.Warmup)
	if err := pauseUntil(ctx, load.Begin.Add(-look-unwatch)); err != nil {
		return err
	}
	if err := r.timePrograms(ctx, s, look); err != nil {
		return err
	}
	if err := pauseUntil(ctx, load.Begin); err != nil {
		return err
	}
	return r.interval(ctx, s, load.Duration)
}

// watchFor is how long the programs are timed in a warm-up.
func watchFor(warmup time.Duration) time.Duration { return min(watchTime, warmup*2/3) - unwatch }

// timePrograms has the kernel time the programs of both hosts for a while.
func (r *rig) timePrograms(ctx context.Context, s *sample, d time.Duration) error {
	w, err := r.startWatch()
	if err != nil {
		return err
	}
	before, err := r.frames()
	if err == nil {
		err = pause(ctx, d)
	}
	var after [len(sides)]frames
	if err == nil {
		after, err = r.frames()
	}
	var stopErr error
	s.runs, _, stopErr = w.stop()
	for _, h := range sides {
		s.watched[h] = after[h].sub(before[h])
	}
	return errors.Join(err, stopErr)
}

// interval takes what is used and what passes in a while.
func (r *rig) interval(ctx context.Context, s *sample, d time.Duration) error {
	before, err := r.usage()
	if err != nil {
		return err
	}
	if err := pauseUntil(ctx, before.at.Add(d)); err != nil {
		return err
	}
	after, err := r.usage()
	s.took, s.machine = after.at.Sub(before.at), after.machine-before.machine
	s.middle = before.at.Add(s.took / 2)
	for _, h := range sides {
		s.agents[h], s.records[h] = after.agents[h]-before.agents[h], after.records[h]-before.records[h]
		s.passed[h] = after.frames[h].sub(before.frames[h])
	}
	return err
}

// usage is what was used and exported until an instant.
type usage struct {
	at      time.Time
	agents  [len(sides)]time.Duration
	machine time.Duration
	records [len(sides)]uint64
	frames  [len(sides)]frames
}

func (r *rig) usage() (u usage, err error) {
	u.at = time.Now()
	for _, h := range sides {
		u.records[h] = r.collectors[h].sum().records
	}
	if u.agents, err = r.agentTimes(); err == nil {
		u.machine, err = cputime.Machine()
	}
	if err == nil {
		u.frames, err = r.frames()
	}
	return u, err
}

func pauseUntil(ctx context.Context, t time.Time) error { return pause(ctx, time.Until(t)) }
