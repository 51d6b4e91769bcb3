package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/controller/health"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/controller/store"
)

// One controller drives all rollouts, by a lease: an object that it writes anew all the time. Another one takes it when
// it has seen no new version of it for leaseTime by its own clock. The lease saves work, no more: two drivers do no
// harm, since each replaces a rollout only as it has read it.

// leaseKey is where the lease is.
func leaseKey() store.Key { return store.Key{Kind: "rolloutDriver", Name: "current"} }

// leaseDoc says who drives.
type leaseDoc struct {
	// Controller is its id, Name its name.
	Controller string    `json:"controller"`
	Name       string    `json:"name"`
	At         time.Time `json:"at"`
}

// leaseTime is for how long a lease counts, unless a test says otherwise. It is renewed leaseParts times in it.
const (
	leaseTime  = 6 * time.Second
	leaseParts = 4
)

// driverLease is the lease as this controller sees it.
type driverLease struct {
	*Server
	mine int64 // its version, where it is this controller's
	seen int64
	at   time.Time // when that version was seen first
}

// driverSight is what this controller sees of who drives rollouts.
type driverSight struct {
	mu  sync.Mutex
	own bool
	// since is since when rollouts are to be driven and nobody is seen to do so; zero where somebody does.
	since time.Time
}

// saw takes in whether this controller drives, and whether anybody does, or nobody has to.
func (d *driverSight) saw(own, somebody bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.own = own; {
	case own || somebody:
		d.since = time.Time{}
	case d.since.IsZero():
		d.since = time.Now()
	}
}

// drives reports whether this controller drives, and for how long nobody is seen to who should.
func (d *driverSight) drives() (own bool, nobody time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		return d.own, 0
	}
	return d.own, time.Since(d.since)
}

// hold takes the lease, or renews it. held is false while it is another one's.
func (l *driverLease) hold(ctx context.Context) (held bool, err error) {
	now, ok := l.Store.Get(leaseKey())
	if ok && now.Version != l.mine {
		if now.Version != l.seen {
			l.seen, l.at = now.Version, time.Now()
		}
		if time.Since(l.at) < l.LeaseTime {
			return false, nil
		}
	}
	self := l.self
	doc, err := json.Marshal(leaseDoc{Controller: self.ID, Name: nameOf(self), At: time.Now().UTC()})
	if err != nil {
		return false, err
	}
	version, err := l.Store.Write(ctx, []store.Change{{Key: leaseKey(), Doc: doc, IfVersion: now.Version}})
	var conflict *store.Conflict
	if errors.As(err, &conflict) {
		l.mine = 0
		return false, nil
	}
	if err == nil {
		l.mine = version
	}
	return err == nil, err
}

// drop gives the lease up, so that nobody waits for its end.
func (l *driverLease) drop() {
	if l.mine == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := l.Store.Write(ctx, []store.Change{{Key: leaseKey(), Delete: true, IfVersion: l.mine}})
	if l.mine = 0; err != nil {
		l.Log.Debug("the lease on driving rollouts ends by itself", "err", err)
	}
}

// leading is the part of a server that drives rollouts.
type leading struct{ *Server }

// driverName is who drives rollouts; "" for nobody.
func (s leading) driverName() string {
	o, ok := s.Store.Get(leaseKey())
	var d leaseDoc
	if !ok || json.Unmarshal(o.Doc, &d) != nil {
		return ""
	}
	return d.Name
}

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
	_, nobody := s.sight.drives()
	return health.Rollouts(open, nobody, time.Now())
}

// drivesNow reports whether this controller drives rollouts.
func (s leading) drivesNow() bool {
	own, _ := s.sight.drives()
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
	l := &driverLease{Server: s.Server}
	for {
		if ids, err := s.driven(ctx, false); err == nil && len(ids) == 0 {
			s.sight.saw(false, true)
		}
		if _, err := s.driven(ctx, true); err != nil {
			return
		}
		held, err := l.hold(ctx)
		s.sight.saw(held, time.Since(l.at) < s.LeaseTime)
		if err != nil {
			s.Log.Debug("the lease on driving rollouts", "err", err)
		}
		if held {
			s.driveUnder(ctx, l)
			continue
		}
		select {
		case <-time.After(s.LeaseTime / leaseParts):
		case <-ctx.Done():
			return
		}
	}
}

// driveUnder drives rollouts until there are none, or the lease is not this controller's any more.
func (s leading) driveUnder(ctx context.Context, l *driverLease) {
	s.Log.Info("this controller drives rollouts")
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
		l.drop()
		s.sight.saw(false, true)
	}()
	d := driving.Driver{World: rolloutWorld(s), Record: rolloutRecord(s), Epoch: s.Epoch}
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
		if s.another(ctx, ids, s.LeaseTime/leaseParts/2) != nil {
			return
		}
		if time.Since(renewed) < s.LeaseTime/leaseParts {
			continue
		}
		held, err := l.hold(ctx)
		switch {
		case held:
			renewed = time.Now()
		case err == nil, time.Since(renewed) >= s.LeaseTime:
			s.Log.Warn("this controller does not drive rollouts any more", "err", err)
			return
		}
	}
}
