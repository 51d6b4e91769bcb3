package rpc

import (
	"context"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/controller/rollout"
	stagecalls "heddle/internal/controller/rollout/calls"
	"heddle/internal/controller/rollout/driverlease"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/controller/rollout/leader"
	"heddle/internal/controller/rollout/vitals"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers"
)

// openRollouts is the part of a fleet that knows which rollouts are open.
type openRollouts struct{ *fleet }

// states are how many rollouts are open, by state.
func (o openRollouts) states() map[string]int {
	all := map[string]int{string(rollout.Running): 0, string(rollout.Paused): 0, string(rollout.Halted): 0,
		string(rollout.TakingBack): 0}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.rolling.open {
		all[string(r.State)]++
	}
	return all
}

// waiting says which rollouts wait for somebody.
func (o openRollouts) waiting(sight *driverlease.Sight) []api.HealthFinding {
	o.mu.Lock()
	var open []health.OpenRollout
	for _, r := range o.rolling.open {
		one := health.OpenRollout{ID: r.ID, State: string(r.State), Who: r.Who, Driven: r.Driven(), Since: r.Since,
			Begun: r.Begun, Stages: len(r.Order.Stages)}
		if len(r.Found) > 0 {
			one.Found = findingText(r.Found[0])
		}
		open = append(open, one)
	}
	o.mu.Unlock()
	_, nobody := sight.Drives()
	return health.Rollouts(open, nobody, time.Now())
}

// Driven implements leader.Rollouts: those are the rollouts that a driver has to do something for. The error is the
// context's.
func (o openRollouts) Driven(ctx context.Context, wait bool) (ids []string, err error) {
	look := func() bool {
		ids = o.drivenNow()
		return len(ids) > 0 || !wait
	}
	return ids, until(ctx, o.fleet, look)
}

// drivenNow are the same, by their ids. The caller holds the fleet's lock.
func (o openRollouts) drivenNow() (ids []string) {
	for id, r := range o.rolling.open {
		if r.bad == nil && r.Driven() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Another implements leader.Rollouts: it returns when other rollouts than these are to be driven, or after a time. The
// error is the context's.
func (o openRollouts) Another(ctx context.Context, ids []string, most time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = until(waiting, o.fleet, func() bool {
		return !slices.Equal(ids, o.drivenNow())
	})
	return ctx.Err()
}

// leaderOf is what drives rollouts at a server.
func leaderOf(s *Server) *leader.Leader {
	return &leader.Leader{Rollouts: openRollouts{s.fleet}, Log: s.Log, Sight: s.sight,
		Driver: driving.Driver{World: worldOf(s), Record: recordOf(s), Epoch: s.Epoch},
		Lease: &driverlease.Lease{Store: s.Store, Log: s.Log, ID: s.This.ID, Name: peers.NameOf(s.This),
			Time: s.LeaseTime}}
}

// rolloutsOf is what answers people about rollouts at a server.
func rolloutsOf(s *Server) stagecalls.Service {
	record := recordOf(s)
	return stagecalls.Service{Store: s.Store, Epoch: s.Epoch, Record: record.Record, Release: record.release,
		TakeBack: people{s}.takeBack,
		Hosts: func(ctx context.Context, r *rollout.Rollout) map[string]driving.Host {
			return worldOf(s).Hosts(ctx, r, nil, true)
		}}
}

// vitalsOf reads what hosts have counted, for a server.
func vitalsOf(s *Server) vitals.Reader {
	return vitals.Reader{Log: s.Log, Roster: s.Roster, Here: openRollouts{s.fleet}.vitals, Agent: agentOf(s)}
}
