package past

import (
	"bytes"
	"sync"
	"time"

	"heddle/internal/slice"
)

const (
	// MostKept is how large the definitions are together that were read and are kept, in bytes.
	MostKept = 64 << 20
	// keptTime is how long one is kept that nobody asks for any more.
	keptTime = 5 * time.Minute
	// objectCost is what an object takes beside its name and document.
	objectCost = 160
)

// Kept are the earlier definitions that were read last. To make one of its records takes up to a hundred of them, and
// who compares two asks for both again and again. What a revision was does not change.
type Kept struct {
	// Most is how large they are together, in bytes.
	Most int

	mu    sync.Mutex
	bytes int
	by    map[int64]*keptOne
	timer *time.Timer // nil while none is kept
}

// keptOne is a definition that is kept.
type keptOne struct {
	set  *slice.Set
	size int
	used time.Time
}

// Get is the definition of a revision; nil where it is not kept.
func (k *Kept) Get(revision int64) *slice.Set {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.by[revision]
	if one == nil {
		return nil
	}
	one.used = time.Now()
	return one.set
}

// Keep keeps the definition of a revision, in place of those that were used least recently, and returns it. What it has
// in common with the present one is not held twice.
func (k *Kept) Keep(revision int64, set, now *slice.Set) *slice.Set {
	set, size := sharing(set, now)
	k.mu.Lock()
	defer k.mu.Unlock()
	if size > k.Most {
		return set
	}
	k.remove(revision)
	for k.bytes+size > k.Most {
		k.remove(k.oldest())
	}
	if k.by == nil {
		k.by = map[int64]*keptOne{}
	}
	k.by[revision] = &keptOne{set, size, time.Now()}
	k.bytes += size
	if k.timer == nil {
		k.timer = time.AfterFunc(keptTime, func() { k.forget(time.Now()) })
	}
	return set
}

// forget removes those that nobody has asked for of late.
func (k *Kept) forget(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for revision, one := range k.by {
		if now.Sub(one.used) >= keptTime {
			k.remove(revision)
		}
	}
	if k.timer == nil {
		return
	}
	if len(k.by) == 0 {
		k.timer.Stop()
		k.timer = nil
		return
	}
	k.timer.Reset(keptTime)
}

// oldest is the one that was used least recently. The caller holds the lock.
func (k *Kept) oldest() (revision int64) {
	var at *keptOne
	for r, one := range k.by {
		if at == nil || one.used.Before(at.used) {
			revision, at = r, one
		}
	}
	return revision
}

// remove forgets one. The caller holds the lock.
func (k *Kept) remove(revision int64) {
	if one := k.by[revision]; one != nil {
		k.bytes -= one.size
		delete(k.by, revision)
	}
}

// sharing is a set with the documents of another one where they are the same, and how large it is in itself.
func sharing(set, with *slice.Set) (*slice.Set, int) {
	all, size := make([]slice.Object, 0, set.Len()), 0
	for o := range set.All() {
		if same, ok := with.Get(o.Key); ok && bytes.Equal(same.Doc, o.Doc) {
			o = same
		}
		all = append(all, o)
		size += len(o.Name) + len(o.Doc) + objectCost
	}
	return slice.Of(all...), size
}
