package leader

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"heddle/internal/controller/rollout/driverlease"
	"heddle/internal/controller/rollout/driving"
)

// Rollouts are those that are open, as a controller knows them. Their drivers have to do something for some of them.
type Rollouts interface {
	// Driven are those, by their ids, once there are some if wait is set. The error is the context's.
	Driven(ctx context.Context, wait bool) ([]string, error)
	// Another returns when they are others than these, or after a time. The error is the context's.
	Another(ctx context.Context, ids []string, most time.Duration) error
}

// Leader drives rollouts.
type Leader struct {
	Rollouts Rollouts
	Driver   driving.Driver
	// Lease says who drives; Sight is told.
	Lease *driverlease.Lease
	Sight *driverlease.Sight
	Log   *slog.Logger
}

// Run drives rollouts while this controller has the lease, until ctx ends.
func (l *Leader) Run(ctx context.Context) {
	for {
		if ids, err := l.Rollouts.Driven(ctx, false); err == nil && len(ids) == 0 {
			l.Sight.Saw(false, true)
		}
		if _, err := l.Rollouts.Driven(ctx, true); err != nil {
			return
		}
		held, err := l.Lease.Hold(ctx)
		l.Sight.Saw(held, l.Lease.Another())
		if err != nil {
			l.Log.Debug("the lease on driving rollouts", "err", err)
		}
		if held {
			l.under(ctx)
			continue
		}
		select {
		case <-time.After(l.Lease.Time / driverlease.Parts):
		case <-ctx.Done():
			return
		}
	}
}

// under drives rollouts until there are none, or the lease is not this controller's any more.
func (l *Leader) under(ctx context.Context) {
	l.Log.Info("this controller drives rollouts")
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
		l.Lease.Drop()
		l.Sight.Saw(false, true)
	}()
	under := map[string]chan struct{}{}
	renewed := time.Now()
	for {
		ids, err := l.Rollouts.Driven(ctx, false)
		if err != nil {
			return
		}
		if len(ids) == 0 {
			all.Wait() // a driver that has just ended a rollout says so yet, and gives addresses back
			return
		}
		for _, id := range ids {
			select {
			case <-under[id]: // it was driven to an end, and somebody has resumed it
			default:
				if under[id] != nil {
					continue
				}
			}
			over := make(chan struct{})
			under[id] = over
			all.Go(func() {
				defer close(over)
				if err := l.Driver.Drive(ctx, id); err != nil && ctx.Err() == nil {
					l.Log.Error("a rollout can't be driven", "rollout", id, "err", err)
				}
			})
		}
		if l.Rollouts.Another(ctx, ids, l.Lease.Time/driverlease.Parts/2) != nil {
			return
		}
		if time.Since(renewed) < l.Lease.Time/driverlease.Parts {
			continue
		}
		held, err := l.Lease.Hold(ctx)
		switch {
		case held:
			renewed = time.Now()
		case err == nil, time.Since(renewed) >= l.Lease.Time:
			l.Log.Warn("this controller does not drive rollouts any more", "err", err)
			return
		}
	}
}
