package rpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/driverlease"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers"
)

// leading is the part of a server that drives rollouts.
type leading struct{ *Server }

// openRollouts are how many rollouts are open, by state.
func (s leading) openRollouts() map[string]int {
	all := map[string]int{string(rollout.Running): 0, string(rollout.Paused): 0, string(rollout.Halted): 0,
		string(rollout.TakingBack): 0}
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	for _, r := range s.fleet.rolling.open {
		all[string(r.State)]++
	}
	return all
}

// waiting says which rollouts wait for somebody.
func (s leading) waiting() []api.HealthFinding {
	s.fleet.mu.Lock()
	var open []health.OpenRollout
	for _, r := range s.fleet.rolling.open {
		one := health.OpenRollout{ID: r.ID, State: string(r.State), Who: r.Who, Driven: r.Driven(), Since: r.Since,
			Begun: r.Begun, Stages: len(r.Order.Stages)}
		if len(r.Found) > 0 {
			one.Found = findingText(r.Found[0])
		}
		open = append(open, one)
	}
	s.fleet.mu.Unlock()
	_, nobody := s.sight.Drives()
	return health.Rollouts(open, nobody, time.Now())
}

// drivesNow reports whether this controller drives rollouts.
func (s leading) drivesNow() bool {
	own, _ := s.sight.Drives()
	return own
}

// driven are the rollouts that a driver has to do something for. The error is the context's.
func (s leading) driven(ctx context.Context, wait bool) (ids []string, err error) {
	look := func() bool {
		ids = s.drivenNow()
		return len(ids) > 0 || !wait
	}
	return ids, until(ctx, s.fleet, look)
}

// drivenNow are the same, by their ids. The caller holds the fleet's lock.
func (s leading) drivenNow() (ids []string) {
	for id, r := range s.fleet.rolling.open {
		if r.bad == nil && r.Driven() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// another returns when other rollouts than these are to be driven, or after a time. The error is the context's.
func (s leading) another(ctx context.Context, ids []string, most time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = until(waiting, s.fleet, func() bool {
		return !slices.Equal(ids, s.drivenNow())
	})
	return ctx.Err()
}

// driveRollouts drives rollouts while this controller has the lease, until ctx ends.
func (s leading) driveRollouts(ctx context.Context) {
	l := &driverlease.Lease{Store: s.Store, Log: s.Log, ID: s.This.ID, Name: peers.NameOf(s.This), Time: s.LeaseTime}
	for {
		if ids, err := s.driven(ctx, false); err == nil && len(ids) == 0 {
			s.sight.Saw(false, true)
		}
		if _, err := s.driven(ctx, true); err != nil {
			return
		}
		held, err := l.Hold(ctx)
		s.sight.Saw(held, l.Another())
		if err != nil {
			s.Log.Debug("the lease on driving rollouts", "err", err)
		}
		if held {
			s.driveUnder(ctx, l)
			continue
		}
		select {
		case <-time.After(s.LeaseTime / driverlease.Parts):
		case <-ctx.Done():
			return
		}
	}
}

// driveUnder drives rollouts until there are none, or the lease is not this controller's any more.
func (s leading) driveUnder(ctx context.Context, l *driverlease.Lease) {
	s.Log.Info("this controller drives rollouts")
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
		l.Drop()
		s.sight.Saw(false, true)
	}()
	d := driving.Driver{World: rolloutWorld(s), Record: recordOf(s.Server), Epoch: s.Epoch}
	under := map[string]chan struct{}{}
	renewed := time.Now()
	for {
		ids, err := s.driven(ctx, false)
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
				if err := d.Drive(ctx, id); err != nil && ctx.Err() == nil {
					s.Log.Error("a rollout can't be driven", "rollout", id, "err", err)
				}
			})
		}
		if s.another(ctx, ids, s.LeaseTime/driverlease.Parts/2) != nil {
			return
		}
		if time.Since(renewed) < s.LeaseTime/driverlease.Parts {
			continue
		}
		held, err := l.Hold(ctx)
		switch {
		case held:
			renewed = time.Now()
		case err == nil, time.Since(renewed) >= s.LeaseTime:
			s.Log.Warn("this controller does not drive rollouts any more", "err", err)
			return
		}
	}
}
