package meter

import "heddle/internal/flow"

// The functions of this file prefetch memory that is not in a cache, for many flows at once: these reads do not wait
// for each other, unlike those of folding and removing, which handle one flow after the other. The functions return
// what they read only so that the compiler does not remove the reads.

// portion is how many keys are prefetched at once.
const portion = 256

// ahead stores the hashes of keys, at most portion of them, and reads what folding them will read and write.
func (t *table) ahead(keys []flow.Key, hashes *[portion]uint32) (read uint64) {
	for i := range keys {
		hashes[i] = t.hash(&keys[i])
	}
	if t.live == 0 {
		return 0
	}
	var cells [portion]uint64
	for i := range keys {
		cells[i] = t.idx.mem.s[hashes[i]&t.idx.mask]
	}
	fresh := 0
	for i := range keys {
		if c := cells[i]; uint32(c>>32) == hashes[i] && c != 0 {
			e := &t.file.entries[uint32(c)-1]
			read += e.head.Load() + e.slots[0].packets + e.slots[0].batch + e.slots[1].batch
		} else {
			fresh++
		}
	}
	return read + t.aheadOfBeginning(fresh)
}

// aheadOfBeginning reads the entries that the next n flows get, at most portion of them, and only those with space in
// the file.
func (t *table) aheadOfBeginning(n int) (read uint64) {
	var next [portion]int32
	for _, i := range next[:t.places.next(next[:n])] {
		if t.chunks[i/chunkEntries].reserved {
			e := &t.file.entries[i]
			read += e.head.Load() + e.slots[0].packets + e.slots[0].batch
		}
	}
	return read
}

// aheadOfExamining reads entries that are due, and their partners', and stores the hashes of these.
func (t *table) aheadOfExamining(found []int32, partners *[groupEntries]uint32) (read uint64) {
	for _, i := range found {
		e := &t.file.entries[i]
		read += e.head.Load() + e.slots[0].batch
	}
	for _, i := range found {
		s := t.file.entries[i].current()
		read += s.packets + s.batch
	}
	if !t.set.Biflow {
		return read
	}
	var cells [groupEntries]uint64
	for k, i := range found {
		if o, ok := opposite(&t.file.entries[i].key); ok {
			partners[k] = t.hash(&o)
			cells[k] = t.idx.mem.s[partners[k]&t.idx.mask]
		}
	}
	for k, c := range cells[:len(found)] {
		if uint32(c>>32) == partners[k] && c != 0 {
			e := &t.file.entries[uint32(c)-1]
			read += e.head.Load() + e.slots[0].packets + e.slots[0].batch
		}
	}
	return read
}

// aheadOfRemoval prefetches the index positions of the entries whose records ended, and stores the hashes of both
// entries of each record: at most portion/2 records.
func (t *table) aheadOfRemoval(items []expired, hashes *[portion]uint32) (read uint64) {
	for k, x := range items {
		if !x.end {
			continue
		}
		h := t.hash(&t.file.entries[x.first].key)
		hashes[2*k] = h
		read += t.idx.mem.s[h&t.idx.mask]
		if x.second >= 0 {
			h = t.hash(&t.file.entries[x.second].key)
			hashes[2*k+1] = h
			read += t.idx.mem.s[h&t.idx.mask]
		}
	}
	return read
}
