package store

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// again is after what time a full store is defragmented once more where nothing says that it helps: a member serves
// nothing meanwhile. After one that failed, and while etcd refuses all writes, it is soon.
const (
	again = 10 * time.Minute
	soon  = time.Minute
)

// attempt is a defragmentation for want of space, and what was known then.
type attempt struct {
	at time.Time
	// removed is the size of what had been removed until then, in bytes.
	removed int64
	// alarm says that writes were refused by etcd itself when it ended.
	alarm bool
}

// worthwhile is the part of the quota that has to be removed before a full store is defragmented once more for it.
const worthwhile = 100

// helps reports whether defragmenting may make space that the last attempt did not. What is in use can't tell: etcd
// counts pages that a compaction has just freed.
func (a attempt) helps(now time.Time, removed, quota int64, alarm bool) bool {
	rest := again
	if alarm {
		rest = soon
	}
	return a.at.IsZero() || removed-a.removed >= max(quota/worthwhile, 1) || alarm && !a.alarm ||
		now.Sub(a.at) >= rest || now.Before(a.at)
}

// makeSpace is for when the quota is reached: no history is kept, every member that can be is defragmented where that
// may help, and the alarms of those that have space again end. With an alarm no lock can be taken, because that is a
// write; none is needed.
func (k *keeper) makeSpace(ctx context.Context, alarm bool) error {
	head, err := k.s.client.Get(ctx, k.s.keys.meta("cluster"))
	if err != nil {
		return wrap(err)
	}
	if err := k.compactAt(ctx, head.Header.Revision); err != nil {
		return err
	}
	if now, removed := time.Now(), k.s.mem.removed(); k.spaced().helps(now, removed, k.s.opts.QuotaBytes, alarm) {
		if err := k.defragment(ctx, 0, 0); err != nil {
			k.space(attempt{now.Add(soon - again), removed, alarm})
			return err
		}
		k.space(attempt{now, removed, alarm})
	}
	st, err := k.s.Status(ctx)
	if err != nil {
		return err
	}
	roomy, err := k.endAlarms(ctx, st)
	if err != nil {
		return err
	}
	a := k.spaced()
	if a.alarm = false; roomy {
		a = attempt{} // the next time begins anew
	}
	k.space(a)
	return nil
}

// leastSpare is what has to be free of the quota before etcd takes writes again: those that may use what is kept of it.
const leastSpare = 1 << 20

// endAlarms has etcd take writes again at the members that have space. It is an error if one has none but for what is
// kept. roomy says that all have more than a little.
func (k *keeper) endAlarms(ctx context.Context, st Status) (roomy bool, err error) {
	roomy = true
	for _, m := range st.Members {
		if m.Health == nil {
			continue // its own controller does it
		}
		if st.Quota <= 0 || m.Health.Size <= st.Quota-leastSpare {
			alarm := &clientv3.AlarmMember{MemberID: m.ID, Alarm: etcdserverpb.AlarmType_NOSPACE}
			if _, err := k.s.client.AlarmDisarm(ctx, alarm); err != nil {
				return false, wrap(err)
			}
		}
		if Full(m.Health.Size, st.Quota) {
			return false, fmt.Errorf("%w: member %s has %d of %d bytes in use after compaction: start every "+
				"controller with a larger --etcd-quota", ErrNoSpace, m.Name, m.Health.InUse, st.Quota)
		}
		roomy = roomy && (st.Quota <= 0 || m.Health.Size <= most(st.Quota)*9/10)
	}
	k.s.log.Info("etcd's database had reached its quota; space was made", "quota", st.Quota)
	return roomy, nil
}

func (k *keeper) spaced() attempt {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

func (k *keeper) space(a attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = a
}
