package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Event is what happened to one object.
type Event struct {
	Key
	// Object is the object after the change; nil when it was deleted.
	Object *Object
	// Before is the object before it; nil when it is new.
	Before *Object
}

// Batch is everything that one revision changed, or the whole state.
type Batch struct {
	Revision int64
	// Reset says that the events are the whole state: whatever was known before and is not in it is gone. The first
	// batch is one, and later one that follows on a gap.
	Reset bool
	// Events are in no order. A batch without any says only that the revision is reached. They are shared: don't change
	// them.
	Events []Event
}

// kept is how many events are kept for those who watch; who is further behind gets the whole state.
const kept = 1 << 14

// memory is the state as of one revision. The objects in it never change; a change puts another in their place.
type memory struct {
	mu      sync.RWMutex
	objects map[Kind]map[string]*Object
	rev     int64
	// generation counts the resets. recent holds what happened after the revision since, of this generation.
	generation int64
	since      int64
	recent     []Batch
	events     int
	infos      chunkInfos
	// gone is the size of the objects that were removed, in bytes.
	gone int64
	// changed is closed, and replaced, when the revision moves.
	changed chan struct{}
}

func newMemory() *memory {
	return &memory{objects: map[Kind]map[string]*Object{}, infos: chunkInfos{}, changed: make(chan struct{})}
}

func (m *memory) revision() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.rev
}

// resets is how often all of the state was replaced.
func (m *memory) resets() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.generation
}

// removed is the size of the objects that were removed since this controller started, in bytes.
func (m *memory) removed() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.gone
}

func (m *memory) get(k Key) (*Object, int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.objects[k.Kind][k.Name], m.rev
}

func (m *memory) list(kind Kind) []*Object {
	m.mu.RLock()
	all := make([]*Object, 0, len(m.objects[kind]))
	for _, o := range m.objects[kind] {
		all = append(all, o)
	}
	m.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Object) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (m *memory) kinds() []Kind {
	m.mu.RLock()
	defer m.mu.RUnlock()
	kinds := make([]Kind, 0, len(m.objects))
	for k, objects := range m.objects {
		if len(objects) > 0 {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// reset replaces all of the state.
func (m *memory) reset(rev int64, objects []*Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects, m.infos = map[Kind]map[string]*Object{}, chunkInfos{}
	for _, o := range objects {
		m.put(o)
	}
	m.rev, m.since, m.recent, m.events = rev, rev, nil, 0
	m.generation++
	m.wake()
}

func (m *memory) put(o *Object) {
	names := m.objects[o.Kind]
	if names == nil {
		names = map[string]*Object{}
		m.objects[o.Kind] = names
	}
	names[o.Name] = o
	if o.Kind == KindPorts {
		m.infos.put(o)
	}
}

func (m *memory) remove(k Key) {
	delete(m.objects[k.Kind], k.Name)
	if k.Kind == KindPorts {
		m.infos.remove(k.Name)
	}
}

func (m *memory) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// apply takes a revision's changes. Changes of a revision that is there already are left out.
func (m *memory) apply(rev int64, events []Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rev <= m.rev {
		return
	}
	for i := range events {
		e := &events[i]
		e.Before = m.objects[e.Kind][e.Name]
		if e.Object != nil {
			m.put(e.Object)
		} else {
			m.remove(e.Key)
			if e.Before != nil {
				m.gone += int64(len(e.Before.Doc))
			}
		}
	}
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Object == nil && e.Before == nil })
	m.rev = rev
	if len(events) > 0 {
		m.remember(Batch{Revision: rev, Events: events})
	}
	m.wake()
}

func (m *memory) remember(b Batch) {
	m.recent = append(m.recent, b)
	m.events += len(b.Events)
	for m.events > kept && len(m.recent) > 1 {
		m.events -= len(m.recent[0].Events)
		m.since = m.recent[0].Revision
		m.recent[0] = Batch{} // nothing of it stays in memory
		m.recent = m.recent[1:]
	}
}

// position is how far somebody who watches is.
type position struct {
	rev, generation int64
	started         bool
}

// next returns what follows on a position, or nil and a channel that is closed when there is more.
func (m *memory) next(p *position) (*Batch, <-chan struct{}) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !p.started && p.rev > 0 && p.rev >= m.since && p.rev <= m.rev {
		p.generation = m.generation
	}
	p.started = true
	if p.generation != m.generation || p.rev < m.since {
		p.generation, p.rev = m.generation, m.rev
		return m.whole(), nil
	}
	if p.rev == m.rev {
		return nil, m.changed
	}
	at, _ := slices.BinarySearchFunc(m.recent, p.rev+1, func(b Batch, rev int64) int {
		return cmp.Compare(b.Revision, rev)
	})
	if at == len(m.recent) {
		p.rev = m.rev
		return &Batch{Revision: m.rev}, nil
	}
	p.rev = m.recent[at].Revision
	return &m.recent[at], nil
}

func (m *memory) whole() *Batch {
	b := &Batch{Revision: m.rev, Reset: true}
	for _, objects := range m.objects {
		for _, o := range objects {
			b.Events = append(b.Events, Event{Key: o.Key, Object: o})
		}
	}
	return b
}

// wait returns when the state has reached a revision.
func (m *memory) wait(ctx context.Context, rev int64) error {
	for {
		m.mu.RLock()
		reached, changed := m.rev >= rev, m.changed
		m.mu.RUnlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
