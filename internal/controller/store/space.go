package store

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// again is after what time a full store is defragmented once more where nothing says that it helps: a member serves
// nothing meanwhile.
const again = 10 * time.Minute

// attempt is a defragmentation for want of space, and what was known then.
type attempt struct {
	at       time.Time
	removals int64
	// alarm says that writes were refused by etcd itself when it ended.
	alarm bool
}

// helps reports whether defragmenting may make space that the last attempt did not. What is in use can't tell: etcd
// counts pages that a compaction has just freed.
func (a attempt) helps(now time.Time, removals int64, alarm bool) bool {
	return a.at.IsZero() || removals != a.removals || alarm && !a.alarm || now.Sub(a.at) >= again || now.Before(a.at)
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
	if now, removals := time.Now(), k.s.mem.removed(); k.spaced().helps(now, removals, alarm) {
		if err := k.defragment(ctx, 0, 0); err != nil {
			return err
		}
		k.space(attempt{now, removals, alarm})
	}
	if err := k.endAlarms(ctx); err != nil {
		return err
	}
	a := k.spaced()
	a.alarm = false
	k.space(a)
	return nil
}

// endAlarms has writes accepted again by the members that have space.
func (k *keeper) endAlarms(ctx context.Context) error {
	st, err := k.s.Status(ctx)
	if err != nil {
		return err
	}
	for _, m := range st.Members {
		if m.Health == nil {
			continue // its own controller does it
		}
		// With less than a tenth to spare the next alarm would come at once.
		if st.Quota > 0 && m.Health.Size > most(st.Quota) {
			return fmt.Errorf("%w: member %s has %d of %d bytes in use after compaction: start every controller "+
				"with a larger --etcd-quota", ErrNoSpace, m.Name, m.Health.InUse, st.Quota)
		}
		alarm := &clientv3.AlarmMember{MemberID: m.ID, Alarm: etcdserverpb.AlarmType_NOSPACE}
		if _, err := k.s.client.AlarmDisarm(ctx, alarm); err != nil {
			return wrap(err)
		}
	}
	k.s.log.Info("etcd's database had reached its quota; space was made", "quota", st.Quota)
	return nil
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
