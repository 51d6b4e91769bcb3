package meter

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"unsafe"

	"heddle/internal/flow"
)

// table is the flows of one switch. One goroutine changes it; any goroutine may read it.
type table struct {
	path   string
	origin [16]byte // of the kernel's tables that count
	log    *slog.Logger
	seed   maphash.Seed

	mu     sync.Mutex // held while the fields below change, and while other goroutines read them
	set    Settings
	file   *file // nil while there has been no flow
	idx    index
	due    memory[tick] // of each entry: when to check it; 0 when it is free
	low    memory[tick] // of each group of entries: none of them is due earlier
	places places
	chunks []chunk
	live   int

	batch   uint64 // the latest one that was begun
	settled uint64 // batches up to this one do not come again
	since   tick   // when the previous drain began
	begun   int    // how many flows began in this drain, whether they fit or not
	outside outside
	cursor  int  // where the search for due entries continues
	foreign bool // the counts in the file come from other kernel tables
	// stopping: every flow is reported one last time.
	stopping bool
	refused  error // why the table cannot grow; logged when it changes
}

// hash has 32 bits and depends on a seed that guests cannot know.
func (t *table) hash(k *flow.Key) uint32 {
	return uint32(maphash.Bytes(t.seed, unsafe.Slice((*byte)(unsafe.Pointer(k)), unsafe.Sizeof(*k))))
}

// newTable continues the table that is in the file, if there is one.
func newTable(path string, origin [16]byte, set Settings, log *slog.Logger) (*table, error) {
	t := &table{path: path, origin: origin, set: set, log: log, seed: maphash.MakeSeed()}
	f, err := openFile(path, set.MaxFlows)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		if err = t.adopt(f); err == nil {
			return t, nil
		}
		t.release()
	}
	if !errors.Is(err, errUnusable) {
		return nil, fmt.Errorf("open the flow table: %w", err)
	}
	return t, t.setAside(err)
}

// setAside renames a file that can't be used, so that it can be examined. Only the latest one is stored.
func (t *table) setAside(why error) error {
	aside := t.path + ".unusable"
	if err := os.Rename(t.path, aside); err != nil {
		return fmt.Errorf("set the flow table aside, which can't be used (%w): %w", why, err)
	}
	t.log.Warn("the flow table can't be used and was set aside: flows that it had and that were not exported are in "+
		"no record; "+
		"the file may be deleted", "why", why, "file", aside)
	return nil
}

// create makes the file, for the first flow.
func (t *table) create() error {
	f, err := createFile(t.path, t.set.MaxFlows, t.origin)
	if err != nil {
		return err
	}
	f.header.highest.Store(t.batch)
	return t.adopt(f)
}

// adopt takes over a mapped file with its flows.
func (t *table) adopt(f *file) error {
	t.file = f
	n := len(f.entries)
	t.places, t.chunks, t.live, t.cursor = newPlaces(n), make([]chunk, n/chunkEntries), 0, 0
	var err error
	if t.due, err = newMemory[tick](n); err != nil {
		return err
	}
	if t.low, err = newMemory[tick](n / groupEntries); err != nil {
		return err
	}
	if t.idx, err = newIndex(0); err != nil {
		return err
	}
	t.foreign = f.header.origin != t.origin
	t.batch = f.header.highest.Load()
	return f.written(t.adoptChunk)
}

func (t *table) adoptChunk(c int) error {
	for i := c * chunkEntries; i < (c+1)*chunkEntries; i++ {
		e := &t.file.entries[i]
		if e.head.Load() == 0 {
			continue
		}
		if !e.sane() {
			return fmt.Errorf("%w: entry %d makes no sense", errUnusable, i)
		}
		if e.current().ended {
			e.free()
			continue
		}
		hash := t.hash(&e.key)
		if _, twice := t.findHash(hash, &e.key); twice {
			return fmt.Errorf("%w: entry %d is of a flow that has another", errUnusable, i)
		}
		if err := t.idx.fit(t.live + 1); err != nil {
			return err
		}
		t.places.set(i)
		t.place(hash, i)
		t.setDue(i, 1)
	}
	t.chunks[c].reserved = t.chunks[c].live > 0
	if !t.chunks[c].reserved {
		return t.file.freeChunk(c)
	}
	return nil
}

// place records that an allocated entry is in use.
func (t *table) place(hash uint32, i int) {
	t.idx.put(hash, uint32(i))
	t.chunks[i/chunkEntries].live++
	t.live++
}

// release unmaps and closes the file, which stays.
func (t *table) release() {
	if t.file == nil {
		return
	}
	t.file.close()
	t.idx.mem.release()
	t.due.release()
	t.low.release()
	t.file, t.idx, t.chunks, t.places, t.live = nil, index{}, nil, places{}, 0
}

func (t *table) findHash(hash uint32, k *flow.Key) (int, bool) {
	for p := hash & t.idx.mask; ; p = (p + 1) & t.idx.mask {
		c := t.idx.mem.s[p]
		if c == 0 {
			return 0, false
		}
		if uint32(c>>32) == hash {
			if i := int(uint32(c) - 1); t.file.entries[i].key == *k {
				return i, true
			}
		}
	}
}

// configure applies new settings.
func (t *table) configure(set Settings) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if set == t.set {
		return nil
	}
	t.set = set
	t.look()
	if t.file == nil || set.MaxFlows <= len(t.file.entries) {
		return nil
	}
	t.release()
	f, err := openFile(t.path, set.MaxFlows)
	if err != nil {
		return err
	}
	return t.adopt(f)
}

// stop begins or ends reporting every flow one last time.
func (t *table) stop(stopping bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = stopping
	t.look()
}

// tidy cleans up when there is no flow any more: it removes the file unless flows are expected.
func (t *table) tidy(expected bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live > 0 {
		return nil
	}
	if t.foreign {
		t.foreign, t.settled, t.batch = false, 0, 0
		if t.file != nil {
			t.file.header.highest.Store(0)
			t.file.header.write(t.origin)
		}
	}
	if t.file == nil {
		return nil
	}
	if expected {
		return t.idx.fit(0)
	}
	t.release()
	return os.Remove(t.path)
}

// errFull is that the configured number of flows is reached.
var errFull = errors.New("maxFlows is reached")

// allocate takes a free entry and returns its number.
func (t *table) allocate() (int, error) {
	if t.live >= t.set.MaxFlows {
		return 0, errFull
	}
	if t.file == nil {
		if err := t.create(); err != nil {
			t.release()
			return 0, err
		}
	}
	if err := t.idx.fit(t.live + 1); err != nil {
		return 0, err
	}
	i, ok := t.places.take()
	if !ok {
		return 0, errFull
	}
	if c := &t.chunks[i/chunkEntries]; !c.reserved {
		if err := t.file.reserveChunk(i / chunkEntries); err != nil {
			t.places.clear(i)
			return 0, err
		}
		c.reserved = true
	}
	return i, nil
}

// refuse logs once why flows get no entry.
func (t *table) refuse(err error) {
	if t.refused == nil || t.refused.Error() != err.Error() {
		t.log.Warn("a new flow does not fit into the flow table: it is exported at every drain, as flows without "+
			"resources; "+
			"raise maxFlows, or shorten the timeouts", "why", err, "flows", t.live)
	}
	t.refused = err
}

// remove frees an entry; hash is the hash of its key.
func (t *table) remove(i int, hash uint32) {
	t.idx.remove(hash, uint32(i))
	t.file.entries[i].free()
	t.due.s[i] = 0
	t.places.clear(i)
	t.live--
	t.chunks[i/chunkEntries].live--
	if t.refused != nil && t.live < t.set.MaxFlows*9/10 {
		t.refused = nil
	}
}
