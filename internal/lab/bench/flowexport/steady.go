package flowexport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/lab/traffic"
)

// steady is a load that runs through a whole series while metering is switched on and off under it, so that no start of
// processes, and no chance of their placement, comes between two intervals that are compared.
type steady struct {
	rig   *rig
	cell  cell
	ctx   context.Context // ends with the load
	stop  context.CancelCauseFunc
	ended chan struct{}
}

const (
	// steadyTime is longer than any series. All sessions of an end must have begun within startPatience: the last
	// of eight pairs start while seven others leave them little CPU time.
	steadyTime    = 24 * time.Hour
	startPatience = time.Minute
	// sinkBuffer has space for some dozens of packets. If a sink gets no CPU for a while, the kernel drops its
	// packets after they arrived. A buffer of megabytes would evict everything else from the caches, at the expense
	// of the sender.
	sinkBuffer = 64 << 10
	// sinkNap is how often all sinks together look for packets: the senders' CPUs must also wake them.
	sinkNap = 200 * time.Microsecond
	// flowing is the number of units after which a load counts as under way.
	flowing = 100
)

var errStopped = errors.New("the load was stopped")

// startSteady starts the load and returns when all pairs are under way.
func (r *rig) startSteady(ctx context.Context, c cell) (*steady, error) {
	load := traffic.Load{Kind: c.kind, Size: c.size, Sessions: c.sessions, Warmup: startPatience, Duration: steadyTime}
	switch c.kind {
	case traffic.KindUDP:
		load.Buffer, load.Nap, load.Flows = sinkBuffer, time.Duration(c.pairs)*sinkNap, r.opts.flows()
	case traffic.KindCRR:
		load.Addresses = serverAddresses
	}
	s := &steady{rig: r, cell: c, ended: make(chan struct{})}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	before, err := r.marks(ctx, c)
	if err != nil {
		s.stop(err)
		return nil, err
	}
	group, loads := errgroup.WithContext(s.ctx)
	for n := range r.pairsOf(c) {
		group.Go(func() error {
			i := n - r.fleet.first[c.adapter]
			client, server := c.cpus(i, r.cpus)
			var err error
			if c.emulated() {
				err = r.betweenGuests(loads, n, load)
			} else {
				_, err = r.opts.measure(loads, r.pair(n, client, server), load)
			}
			if err == nil {
				err = errors.New("it ended before its time")
			}
			return fmt.Errorf("%s, pair %d: %w", c, i+1, err)
		})
	}
	go func() {
		defer close(s.ended)
		s.stop(group.Wait()) // the first of several causes is kept
	}()
	if err := s.await(before); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// await waits until every pair has made progress, and then for the warm-up.
func (s *steady) await(before []mark) error {
	patience := startPatience
	if s.cell.emulated() {
		patience = bootPatience
	}
	for end := time.Now().Add(patience); ; {
		now, err := s.rig.marks(s.ctx, s.cell)
		if err != nil {
			return err
		}
		still := 0
		for i := range now {
			if now[i].done < before[i].done+flowing {
				still++
			}
		}
		switch {
		case still == 0:
			return s.pause(s.rig.opts.Warmup)
		case time.Now().After(end):
			return fmt.Errorf("%s: %d pairs are not under way after %v", s.cell, still, patience)
		}
		if err := s.pause(endLook); err != nil {
			return err
		}
	}
}

// pause waits, unless the load ends: then it says why.
func (s *steady) pause(d time.Duration) error {
	if err := pause(s.ctx, d); err != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// sample measures an interval with the hosts' present configuration, after a warm-up.
func (s *steady) sample(warmup, duration time.Duration) (out sample, err error) {
	look := watchFor(s.rig.opts.Warmup)
	if err = s.pause(warmup - look - unwatch); err != nil {
		return out, err
	}
	if err = s.rig.timePrograms(s.ctx, &out, look); err != nil {
		return out, s.why(err)
	}
	if err = s.pause(unwatch); err != nil {
		return out, err
	}
	first, err := s.rig.marks(s.ctx, s.cell)
	if err != nil {
		return out, err
	}
	if err = s.rig.interval(s.ctx, &out, duration); err != nil {
		return out, s.why(err)
	}
	last, err := s.rig.marks(s.ctx, s.cell)
	if err != nil {
		return out, err
	}
	out.rate, out.lost = rate(first, last)
	return out, nil
}

// why is what ended the load, if that is the cause of an error.
func (s *steady) why(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// end stops the load. It returns when its processes are gone.
func (s *steady) end() error {
	s.stop(errStopped)
	<-s.ended
	if cause := context.Cause(s.ctx); !errors.Is(cause, errStopped) {
		return cause
	}
	return nil
}
