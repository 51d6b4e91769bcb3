package store

import (
	"fmt"
	"slices"
	"time"
)

// What of the quota is kept: a write that only removes, a revocation, and the claim of a port are taken up to the quota
// itself, all others up to nine tenths of it, and no further than leastKept below it. A full store would keep a stolen host in the cluster, and a guest without
// its port, until somebody makes space.

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

// leastKept is for small quotas: what one transaction of the largest size makes a database grow by, and then some.
const leastKept = 4 << 20

// most is how large the database may be for other than vital writes.
func most(quota int64) int64 { return quota - max(quota/10, leastKept) }

// Etcd knows the size of what it wrote in the last 100 ms when that is committed. near is more than it writes meanwhile:
// so near the bound that is committed and the size measured, but not more often than after measured.
const (
	near     = 64 << 20
	measured = 10 * time.Millisecond
)

// crowded reports whether the database of an embedded etcd has left no more of its quota than what is kept.
func (s *Store) crowded() bool {
	if s.etcd == nil {
		return false
	}
	db, bound := s.etcd.Server.Backend(), most(s.opts.QuotaBytes)
	if size := db.Size(); size > bound || size < bound-near {
		return size > bound
	}
	now, last := time.Now().UnixNano(), s.measuredAt.Load()
	if now-last >= int64(measured) && s.measuredAt.CompareAndSwap(last, now) {
		db.ForceCommit()
	}
	return db.Size() > bound
}

// space refuses a write for which the quota has no space, and has space made then.
func (s *Store) space(u use) error {
	if u == vital || !s.crowded() {
		return nil
	}
	s.keeper.hurry()
	return fmt.Errorf("%w: %s. Hosts go on meanwhile, and what only removes, revocations and claims of static ports "+
		"are taken", ErrNoSpace, ownSpace)
}
