package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Maintain says how the database is kept small.
type Maintain struct {
	// Every is how often the database is looked at; negative = never by itself.
	Every time.Duration
	// KeepFor and KeepRevisions are how much of the history is kept: what is older, or further back, is compacted.
	KeepFor       time.Duration
	KeepRevisions int64
	// DefragRatio and DefragAbove say when a member is defragmented: when its database is larger than DefragAbove bytes
	// and than so many times what is in use.
	DefragRatio float64
	DefragAbove int64
	// Outside says that an existing cluster is maintained as well; else that is left to who runs it.
	Outside bool
}

// defragAbove is DefragAbove unless somebody says, or an eighth of the quota is less.
const defragAbove = 256 << 20

func (m Maintain) withDefaults(fast bool) Maintain {
	if m.Every == 0 && fast {
		m.Every = -1 // tests have it done when they want it
	}
	if m.Every == 0 {
		m.Every = 30 * time.Second
	}
	if m.KeepFor == 0 {
		m.KeepFor = 5 * time.Minute
	}
	if m.KeepRevisions == 0 {
		m.KeepRevisions = 100_000
	}
	if m.DefragRatio == 0 {
		m.DefragRatio = 2
	}
	if m.DefragAbove == 0 {
		m.DefragAbove = defragAbove
	}
	return m
}

// mark is the revision at a moment.
type mark struct {
	rev int64
	at  time.Time
}

// keeper keeps the database small, and remembers what it needs from one look to the next.
type keeper struct {
	s  *Store
	mu sync.Mutex
	// marks are recent revisions, the oldest first. The last one that is older than KeepFor is compacted.
	marks        []mark
	compacted    mark
	defragmented time.Time
	// reached has a signal when a write was refused for the quota.
	reached chan struct{}
	// last is the last defragmentation for want of space.
	last attempt
}

func newKeeper(s *Store) *keeper { return &keeper{s: s, reached: make(chan struct{}, 1)} }

// hurry has space made soon.
func (k *keeper) hurry() {
	select {
	case k.reached <- struct{}{}:
	default:
	}
}

// begin makes space in an embedded etcd that starts at its quota, before anything is written. It may start with a
// larger quota than before, which ends the alarm.
func (k *keeper) begin(ctx context.Context) {
	if k.s.etcd == nil || k.s.borrowed {
		return
	}
	// What this member knows; nobody else is asked.
	full := slices.ContainsFunc(k.s.etcd.Server.Alarms(), func(a *etcdserverpb.AlarmMember) bool {
		return a.Alarm == etcdserverpb.AlarmType_NOSPACE
	})
	if !full && !k.s.Limits.crowded() {
		return
	}
	if err := k.makeSpace(ctx, full); err != nil {
		k.s.log.Warn("etcd's database is at its quota, and no space could be made at the start", "err", err)
	}
}

func (k *keeper) began(rev int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marks = append(k.marks, mark{rev, time.Now()})
}

func (k *keeper) report(st *Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st.Compacted, st.CompactedAt, st.Defragmented = k.compacted.rev, k.compacted.at, k.defragmented
}

// compactTo notes the revision at a moment, and returns up to which one the history can go.
func (k *keeper) compactTo(now mark, keepFor time.Duration, keepRevisions int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marks = append(k.marks, now)
	var old int64
	for len(k.marks) > 0 && now.at.Sub(k.marks[0].at) >= keepFor {
		old, k.marks = k.marks[0].rev, k.marks[1:]
	}
	if to := max(old, now.rev-keepRevisions); to > k.compacted.rev {
		return to
	}
	return 0
}

func (k *keeper) note(compacted int64, defragmented bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if compacted > 0 {
		k.compacted = mark{compacted, time.Now()}
	}
	if defragmented {
		k.defragmented = time.Now()
	}
}

// run keeps the database small until the store ends.
func (k *keeper) run() {
	if k.s.opts.Maintain.Every < 0 || k.s.etcd == nil && !k.s.opts.Maintain.Outside {
		return
	}
	tick := time.NewTicker(k.s.opts.Maintain.Every)
	defer tick.Stop()
	reached := k.reached
	for {
		select {
		case <-k.s.ctx.Done():
			return
		case <-tick.C:
			reached = k.reached
		case <-reached: // once for each tick: where there is no space, more of it makes none
			reached = nil
		}
		// A defragmentation takes some seconds for each GiB.
		ctx, cancel := context.WithTimeout(k.s.ctx, max(k.s.opts.Maintain.Every, 10*time.Minute))
		if err := k.s.Maintain(ctx); err != nil && k.s.ctx.Err() == nil {
			k.s.log.Warn("etcd's database could not be maintained", "err", err)
		}
		cancel()
	}
}

// errBusy says that another controller does the maintenance now.
var errBusy = errors.New("another controller does it now")

// Maintain compacts the history and defragments where that is due. Of several controllers one does it at a time. When
// the database has reached its quota it makes what space it can, and has writes accepted again.
func (s *Store) Maintain(ctx context.Context) error {
	k := s.keeper
	if err := s.Limits.room(); err != nil {
		return err // its lock is a write
	}
	alarms, err := s.alarms(ctx)
	if err != nil {
		return err
	}
	for _, a := range alarms {
		if a.Kind == etcdserverpb.AlarmType_NOSPACE.String() {
			return k.makeSpace(ctx, true)
		}
	}
	err = k.alone(ctx, func() error {
		if s.Limits.crowded() { // what is kept of the quota has room for the lock
			return k.makeSpace(ctx, false)
		}
		if err := k.compact(ctx); err != nil {
			return err
		}
		return k.defragment(ctx, s.opts.Maintain.DefragAbove, s.opts.Maintain.DefragRatio)
	})
	if errors.Is(err, errBusy) {
		return nil
	}
	return err
}

// alone runs something while no other controller does. The lock ends with its holder.
func (k *keeper) alone(ctx context.Context, run func() error) error {
	session, err := concurrency.NewSession(k.s.client, concurrency.WithTTL(15), concurrency.WithContext(ctx))
	if err != nil {
		return wrap(err)
	}
	defer session.Close()
	lock := concurrency.NewMutex(session, k.s.keys.meta("maintenance"))
	switch err := lock.TryLock(ctx); {
	case errors.Is(err, concurrency.ErrLocked):
		return errBusy
	case err != nil:
		return wrap(err)
	}
	return run()
}

func (k *keeper) compact(ctx context.Context) error {
	head, err := k.s.client.Get(ctx, k.s.keys.meta("cluster"))
	if err != nil {
		return wrap(err)
	}
	now := mark{head.Header.Revision, time.Now()}
	to := k.compactTo(now, k.s.opts.Maintain.KeepFor, k.s.opts.Maintain.KeepRevisions)
	if to <= 0 {
		return nil
	}
	return k.compactAt(ctx, to)
}

func (k *keeper) compactAt(ctx context.Context, rev int64) error {
	_, err := k.s.client.Compact(ctx, rev, clientv3.WithCompactPhysical())
	if err != nil && !isCompacted(err) {
		return wrap(err)
	}
	k.note(rev, false)
	return nil
}
