package store

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// What of the quota is kept: a write that only removes, a revocation, and the claim of a port are taken up to the quota
// itself, all others up to nine tenths of it, and no further than leastKept below it. A full store would keep a stolen
// host in the cluster, and a guest without its port, until somebody makes space.

// use says what a write may take of the quota.
type use int

const (
	ordinary use = iota
	vital        // up to the quota itself
)

// useOf is vital where each change only removes, or is said to be.
func useOf(changes []Change) use {
	if slices.ContainsFunc(changes, func(c Change) bool { return !c.Delete && !c.Vital }) {
		return ordinary
	}
	return vital
}

// AllVital marks all changes of a transaction as such that may use what is kept of the quota.
func AllVital(changes []Change) []Change {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Vital = true
	}
	return changes
}

// leastKept is for small quotas: what one transaction of the largest size makes a database grow by, with what it writes
// anew of the pages beside, and then some.
const leastKept = 6 << 20

// most is how large the database may be for other than vital writes.
func most(quota int64) int64 { return quota - max(quota/10, leastKept) }

// Full reports whether a database of that size takes vital writes alone.
func Full(size, quota int64) bool { return quota > 0 && size > most(quota) }

// Etcd knows the size of what it wrote in the last 100 ms when that is committed. near is more than it writes
// meanwhile: so near the bound that is committed and the size measured, but not more often than after measured, or
// after measuredBytes of values were written: large ones would take the space that is kept in that time.
const (
	near          = 64 << 20
	measured      = 10 * time.Millisecond
	measuredBytes = 256 << 10
)

// Limits say whether an embedded etcd can bear a write: whether its database, the disk, and the other members' disks
// have space. Those of an existing cluster are its own, and always do.
type Limits struct {
	dir   string
	quota int64
	// db gives etcd's database, which is another one after a snapshot of the leader's was taken in; nil with an
	// existing cluster, and before etcd runs.
	db func() database
	// held says why nothing is written for the sake of the other members; nil while nothing is in the way.
	held atomic.Pointer[NoRoomElsewhere]
	// measuredAt is when the size of the database was measured anew, in nanoseconds.
	measuredAt atomic.Int64
	// unmeasured is how many bytes of values were written since.
	unmeasured atomic.Int64
}

// database is what is asked of etcd's.
type database interface {
	Size() int64
	ForceCommit()
}

// HoldBack has every write refused, for the reason that is given, until it is called with nil.
func (l *Limits) HoldBack(why *NoRoomElsewhere) { l.held.Store(why) }

// crowded reports whether the database has left no more of its quota than what is kept.
func (l *Limits) crowded() bool {
	if l.db == nil {
		return false
	}
	db, bound := l.db(), most(l.quota)
	if size := db.Size(); size > bound || size < bound-near {
		return size > bound
	}
	now, last := time.Now().UnixNano(), l.measuredAt.Load()
	// A clock that was set back does not put the next measurement off.
	due := now < last || now-last >= int64(measured) || l.unmeasured.Load() >= measuredBytes
	if due && l.measuredAt.CompareAndSwap(last, now) {
		l.unmeasured.Store(0)
		db.ForceCommit()
	}
	return db.Size() > bound
}

// wrote takes in how many bytes of values a transaction has written.
func (l *Limits) wrote(bytes int) { l.unmeasured.Add(int64(bytes)) }

// bear refuses a write for which there is no space.
func (l *Limits) bear(u use) error {
	if err := l.room(); err != nil {
		return err
	}
	if u == vital || !l.crowded() {
		return nil
	}
	return fmt.Errorf("%w: %s. Hosts go on meanwhile, and what only removes, revocations and claims of static ports "+
		"are taken", ErrNoSpace, ownSpace)
}
