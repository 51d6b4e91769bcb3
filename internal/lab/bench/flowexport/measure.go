package flowexport

import (
	"context"
	"errors"
	"time"

	"heddle/internal/lab/cputime"
)

// sample is the result of one measurement.
type sample struct {
	// rate is the sum of all pairs, in the load's unit; lost is the lost share of what was sent, if that is
	// counted.
	rate, lost float64
	// runs are the runs of a host's programs within a window of the warm-up, and watched the frames that passed in
	// it.
	runs    [len(sides)]runs
	watched [len(sides)]frames
	// middle is the middle of the measured interval, and took its length. passed are the frames in it, agents is
	// the CPU time of the hosts' agents, machine that of everything, and records are what the hosts exported.
	middle        time.Time
	took, machine time.Duration
	passed        [len(sides)]frames
	agents        [len(sides)]time.Duration
	records       [len(sides)]uint64
	// before and after are the neighbouring baselines, round is the round of its series.
	before, after *sample
	round         int
}

const (
	// The programs are timed for watchTime or the last two thirds of the warm-up, whichever is shorter, but not for
	// the last unwatch of it.
	watchTime = 300 * time.Millisecond
	unwatch   = 30 * time.Millisecond
)

// watchFor is how long the programs are timed in a warm-up.
func watchFor(warmup time.Duration) time.Duration { return min(watchTime, warmup*2/3) - unwatch }

// timePrograms makes the kernel time the programs of both hosts for a while.
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

// interval measures what is used and what passes in a time.
func (r *rig) interval(ctx context.Context, s *sample, d time.Duration) error {
	before, err := r.usage()
	if err != nil {
		return err
	}
	if err := pause(ctx, time.Until(before.at.Add(d))); err != nil {
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

// usage is what was used and exported up to an instant.
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
