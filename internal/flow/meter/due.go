package meter

// groupEntries is how many entries share a lower bound of when one of them is due: 8 lines of a processor's cache.
const groupEntries = 128

// setDue sets when an entry in use must be checked.
func (t *table) setDue(i int, at tick) {
	t.due.s[i] = at
	low := &t.low.s[i/groupEntries]
	*low = min(*low, at)
}

// look marks every entry to be checked again, after the timeouts have changed. The lock is held.
func (t *table) look() {
	for i, d := range t.due.s {
		if d != 0 {
			t.setDue(i, 1)
		}
	}
}

// lookAt marks the entries of some slots to be checked again.
func (t *table) lookAt(slots map[uint16]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, d := range t.due.s {
		if d != 0 && slots[t.file.entries[i].key.Point] {
			t.setDue(i, 1)
		}
	}
}

// collect finds at most limit records that are due and appends them; flows of points that are gone are due. The entries
// are not checked again until settle was called for them. more says that it stopped at the limit: the next call
// continues there. Groups in which nothing is due are skipped.
func (t *table) collect(now tick, limit int, gone map[uint16]bool, to *harvest) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == 0 {
		return false
	}
	first, n := t.cursor/groupEntries, len(t.low.s)
	if t.collectFrom(t.cursor, n, now, limit, gone, to) || t.collectFrom(0, min(first+1, n), now, limit, gone, to) {
		return true
	}
	t.cursor = first * groupEntries
	return false
}

// collectFrom is collect from an entry on up to the group end.
func (t *table) collectFrom(at, end int, now tick, limit int, gone map[uint16]bool, to *harvest) (more bool) {
	const chunkGroups = chunkEntries / groupEntries
	for g := at / groupEntries; g < end; {
		if t.chunks[g/chunkGroups].live == 0 {
			g += chunkGroups - g%chunkGroups
			continue
		}
		for last := min(end, g-g%chunkGroups+chunkGroups); g < last; g++ {
			if t.low.s[g] <= now && t.collectGroup(max(at, g*groupEntries), (g+1)*groupEntries, now, limit, gone, to) {
				return true
			}
		}
	}
	return false
}

// collectGroup is collect for a group, or the rest of one. If it stops at the limit, the cursor is there.
func (t *table) collectGroup(from, end int, now tick, limit int, gone map[uint16]bool, to *harvest) (more bool) {
	var found [groupEntries]int32
	n, low := 0, never
	for i, d := range t.due.s[from:end] {
		if d-1 < now { // neither free (0, which becomes the largest number here) nor due later
			found[n] = int32(from + i)
			n++
		} else {
			low = min(low, d-1)
		}
	}
	var partners [groupEntries]uint32
	t.aheadOfExamining(found[:n], &partners)
	for k, i := range found[:n] {
		if t.due.s[i] > now { // reported meanwhile, together with its partner
			continue
		}
		if len(to.items) == limit {
			t.cursor = int(i)
			return true
		}
		t.examine(int(i), partners[k], now, gone, to)
	}
	for _, i := range found[:n] {
		low = min(low, t.due.s[i]-1)
	}
	if from%groupEntries == 0 {
		t.low.s[from/groupEntries] = max(low, low+1) // but never stays never
	}
	return false
}
