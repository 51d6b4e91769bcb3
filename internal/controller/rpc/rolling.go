package rpc

import (
	"maps"
	"slices"
	"strings"

	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// A change that hosts make in stages (S102) is a revision of the definition from the beginning. With it an object is
// written that says which hosts have the change; the others are handed the definition with the change undone. The
// parts of what undoes it are written before, as those of a large change are:
//
//	rollout/ID              rollout.Rollout, replaced as a whole by who drives it
//	rolloutPart/ID/0000     what undoes the change
//	rolloutUsual/ID/0000    how hosts were before the first stage

// rolling is the part of a fleet that knows which hosts are to have the change of which open rollout. Its methods are
// called with the fleet's lock.
type rolling struct {
	open  map[string]*rolledOut // by id
	parts map[string][]byte     // by name
	// without are definitions with changes undone.
	without map[variant]*inventory.Inventory
	// ending are rollouts that end with a definition that is about to be written; beside is what some hosts are handed
	// beside it at first.
	ending map[*inventory.Inventory][]string
	beside map[*inventory.Inventory]*inventory.Inventory
}

// rolledOut is an open rollout.
type rolledOut struct {
	kept.Rollout
	undo slice.Change
	read bool // undo is
	// bad is why it can't be read: no host is handed anything else meanwhile.
	bad    error
	staged stagedHosts
}

// variant is a definition with the changes of these rollouts undone.
type variant struct {
	of  *inventory.Inventory
	ids string
}

func newRolling() rolling {
	return rolling{open: map[string]*rolledOut{}, parts: map[string][]byte{},
		without: map[variant]*inventory.Inventory{}, ending: map[*inventory.Inventory][]string{},
		beside: map[*inventory.Inventory]*inventory.Inventory{}}
}

// take takes in an object of the store, and reports whether it is about rollouts.
func (r *rolling) take(e store.Event) bool {
	switch e.Kind {
	case kept.PartKind:
		if e.Object == nil {
			delete(r.parts, e.Name)
		} else {
			r.parts[e.Name] = e.Object.Doc
		}
		return false // it counts with its rollout
	case kept.Kind:
	default:
		return false
	}
	if e.Object == nil {
		delete(r.open, e.Name)
		return true
	}
	k, err := kept.Of(*e.Object)
	if err == nil && !k.Open() {
		delete(r.open, e.Name)
		return true
	}
	now := &rolledOut{Rollout: k, bad: err}
	if was := r.open[e.Name]; was != nil && was.read {
		now.undo, now.read = was.undo, true // which does not change
	}
	r.open[e.Name] = now
	return true
}

// read reads what undoes the changes of rollouts that are new.
func (r *rolling) read() {
	for _, o := range r.open {
		if o.read || o.bad != nil {
			continue
		}
		o.undo, _, o.bad = kept.UndoOf(o.Rollout, func(key store.Key) ([]byte, bool) {
			doc, ok := r.parts[key.Name]
			return doc, ok
		})
		o.read = o.bad == nil
	}
}

// withheld is the part of a fleet that knows which hosts are not to have a change yet.
type withheld struct{ *fleet }

// memberOf is a host as a rollout sees it.
func (f withheld) memberOf(h *host) rollout.Member {
	return rollout.Member{ID: h.id, Labels: f.inventory.Labels(h.doc.Name, h.doc.Labels)}
}

// held are the ids of the open rollouts whose change a host is not to have yet. The caller holds the lock.
func (f withheld) held(h *host) (ids []string) {
	for id, r := range f.rolling.open {
		if r.bad != nil || !r.Order.Has(f.memberOf(h), r.Begun) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// definitionOf is a definition as it is for a host: with the changes undone that it is not to have yet. The caller
// holds the lock.
func (f withheld) definitionOf(v *inventory.Inventory, h *host) (*inventory.Inventory, error) {
	if len(f.rolling.open) == 0 {
		return v, nil
	}
	ids := f.held(h)
	if ending := f.rolling.ending[v]; len(ending) > 0 {
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(ending, id) })
	}
	return f.rolling.undone(v, ids)
}

// undone is a definition with the changes of these rollouts undone.
func (r *rolling) undone(v *inventory.Inventory, ids []string) (*inventory.Inventory, error) {
	if len(ids) == 0 {
		return v, nil
	}
	key := variant{v, strings.Join(ids, " ")}
	if was := r.without[key]; was != nil {
		return was, nil
	}
	set := v.Objects().Clone()
	for _, id := range ids {
		if bad := r.open[id].bad; bad != nil {
			return nil, bad
		}
		set.Apply(r.open[id].undo)
	}
	before, err := inventory.New(set)
	if err == nil {
		r.without[key] = before
	}
	return before, err
}

// also are the definitions that some hosts are handed beside one: an address that a host has by one of them stays. The
// caller holds the lock.
func (f withheld) also(v *inventory.Inventory) (list []*inventory.Inventory) {
	ids := slices.Sorted(maps.Keys(f.rolling.open))
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return slices.Contains(f.rolling.ending[v], id) || f.rolling.open[id].bad != nil
	})
	if before, err := f.rolling.undone(v, ids); err == nil && before != v {
		list = append(list, before)
	}
	if before := f.rolling.beside[v]; before != nil {
		list = append(list, before)
	}
	return list
}

// rolled has the hosts find out anew what they are to have, of which that may be another: was is what they were held
// from before. The caller holds the lock.
func (f withheld) rolled(was map[*host]string) {
	clear(f.rolling.without)
	for _, h := range f.hosts {
		if strings.Join(f.held(h), " ") != was[h] {
			contents(f).renew(h)
		}
	}
	for id, r := range f.rolling.open {
		if r.bad != nil {
			f.log.Error("a rollout can't be read; its hosts keep what they have", "rollout", id, "err", r.bad)
		}
	}
}

// holds are what hosts are held from before a batch that has rollouts. The caller holds the lock.
func (f withheld) holds(b store.Batch) map[*host]string {
	all := map[*host]string{}
	about := func(e store.Event) bool { return e.Kind == kept.Kind }
	if len(f.rolling.open) > 0 && slices.ContainsFunc(b.Events, about) {
		for _, h := range f.hosts {
			all[h] = strings.Join(f.held(h), " ")
		}
	}
	return all
}

// revisionOf is the revision that describes what a host has active; that of its last answer where it is not held. The
// caller holds the lock.
func (f withheld) revisionOf(h *host) int64 {
	if ids := f.held(h); len(ids) == 1 && f.rolling.open[ids[0]].Revision == f.revision {
		if set, err := f.target(h); err == nil && h.active.hash == set.Hash() {
			return f.rolling.open[ids[0]].Base
		}
	}
	return h.active.revision
}

// foretell says which rollouts end with a definition that is about to be written, and what some hosts are handed beside
// it at first (nil for nothing); forget ends that.
func (f withheld) foretell(v *inventory.Inventory, ending []string, beside *inventory.Inventory) (forget func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rolling.ending[v] = ending
	if beside != nil {
		f.rolling.beside[v] = beside
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.rolling.ending, v)
		delete(f.rolling.beside, v)
		maps.DeleteFunc(f.rolling.without, func(k variant, _ *inventory.Inventory) bool { return k.of != f.inventory })
	}
}
