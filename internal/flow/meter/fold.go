package meter

import (
	"time"

	"heddle/internal/flow"
)

// folded is what happened to counts that were folded.
type folded uint8

const (
	added   folded = iota
	already        // the batch came before
	noRoom
)

// fold adds a flow's counts; hash is the hash of its key.
func (t *table) fold(k *flow.Key, hash uint32, c *flow.Counts, batch uint64, now Instant) folded {
	seen := ceilTick(now.Up - t.age(c.Last, now))
	if t.live > 0 {
		if i, ok := t.findHash(hash, k); ok {
			e := &t.file.entries[i]
			if !e.fold(c, batch, seen) {
				return already
			}
			if c.TCPFlags&(finFlag|rstFlag) != 0 {
				t.setDue(i, min(t.due.s[i], e.current().seen+quiet))
			}
			return added
		}
	}
	i, err := t.allocate()
	if err != nil {
		t.refuse(err)
		if t.outside.begins(hash) { // it takes as much space in the kernel as one with an entry
			t.begun++
		}
		return noRoom
	}
	e := &t.file.entries[i]
	e.begin(k, c, batch, seen)
	t.place(hash, i)
	t.begun++
	t.setDue(i, max(1, t.expiry(e.current(), seen).at))
	return added
}

// begin notes which batch is about to be added. The lock is held.
func (t *table) begin(batch uint64) {
	t.batch = max(t.batch, batch)
	if t.file != nil {
		t.file.header.highest.Store(t.batch)
	}
	t.settled = max(t.settled, batch-1)
}

// drained notes that a drain is over; whole says that the source has forgotten everything it brought. It returns how
// many flows began in the drain.
func (t *table) drained(now Instant, whole bool) (begun int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = floorTick(now.Up)
	if whole {
		t.settled = max(t.settled, t.batch)
	}
	begun, t.begun = t.begun, 0
	t.outside.drained()
	return begun
}

// renumbered says whether a batch with that number shows that the file's counts come from other tables of the kernel:
// numbers only go up.
func (t *table) renumbered(batch uint64) bool {
	if batch >= t.batch {
		return false
	}
	t.foreign = true
	return true
}

// age is how long ago the last packet was. The host's clock may have been set meanwhile, so age is at most the time
// since the previous drain.
func (t *table) age(last int64, now Instant) time.Duration {
	between := now.Up - time.Duration(t.since)*tickLength
	return min(max(0, now.Wall.Sub(time.UnixMilli(last))), max(0, between))
}
