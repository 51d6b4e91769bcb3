package rpc

import (
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// taking is a batch of the store while the fleet takes it in.
type taking struct {
	// objects are the definition's; own: they are no others', and may be changed.
	objects *slice.Set
	own     bool
	// revision is that of the definition, there are the ids of the hosts that the batch names.
	revision int64
	there    map[string]bool
	// staged: changes that are not folded may be others; rolled: rollouts are; roster: the list of controllers is.
	staged, rolled, roster bool
}

// taker takes in what became of an object of the store. It is called with the fleet's lock.
type taker func(t *taking, e store.Event)

// takersOf are the parts of a fleet that take in the objects of the store, by the objects' kinds. Others are nothing to
// a fleet.
func takersOf(f *fleet) map[store.Kind]taker {
	rollouts := func(t *taking, e store.Event) {
		if f.rolling.take(e) {
			t.rolled = true
		}
	}
	granted := func(_ *taking, e store.Event) { addressing{f}.takeAddresses(e) }
	all := map[store.Kind]taker{
		store.KindHost: func(t *taking, e store.Event) {
			if e.Object == nil {
				f.removed(e.Name)
				return
			}
			t.there[e.Object.ID] = true
			f.joined(e.Object)
		},
		peers.ControllerKind: func(t *taking, _ store.Event) { t.roster = true },
		definition.Kind: func(t *taking, e store.Event) {
			if e.Object != nil {
				t.revision, f.staged.Change = e.Object.Version, definition.ChangeBy(e.Object.Doc)
				t.staged = true
			}
		},
		definition.ChangeKind: func(t *taking, e store.Event) {
			f.staged.Take(e)
			t.staged = true
		},
		togetherKey().Kind: func(_ *taking, e store.Event) {
			if e.Key == togetherKey() && e.Object != nil {
				f.together.Decided(e.Object.Doc)
			}
		},
		kept.Kind:          rollouts,
		kept.PartKind:      rollouts,
		addresses.Kind:     granted,
		addresses.BookKind: granted,
	}
	for _, kind := range inventory.Kinds() {
		all[store.Kind(kind)] = takeObject
	}
	return all
}

// takeObject takes in what became of an object of the definition.
func takeObject(t *taking, e store.Event) {
	if !t.own {
		t.objects, t.own = t.objects.Clone(), true
	}
	key := slice.Key{Kind: slice.Kind(e.Kind), Name: e.Name}
	if e.Object == nil {
		t.objects.Remove(key)
		return
	}
	t.objects.Put(slice.Object{Key: key, Doc: e.Object.Doc})
}

// take takes in a batch of the store.
func (f *fleet) take(b store.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded, f.read = true, b.Revision
	t := &taking{objects: f.base, revision: f.revision, there: map[string]bool{}, roster: b.Reset, staged: b.Reset,
		rolled: b.Reset}
	if b.Reset {
		t.objects, t.own, f.staged = &slice.Set{}, true, definition.Staging{}
		f.addresses.Reset()
		f.rolling = newRolling()
	}
	held := withheld{f}.holds(b)
	for _, e := range b.Events {
		if take := f.takers[e.Kind]; take != nil {
			take(t, e)
		}
	}
	for id := range f.capabilities.take(b) {
		ownChanged(f, f.hosts[id])
	}
	if b.Reset {
		for id, h := range f.hosts {
			if !t.there[id] {
				f.drop(h)
			}
		}
	}
	if t.roster {
		f.roster++
		f.pokeAll()
	}
	f.base = t.objects
	f.rolling.read()
	if t.staged {
		addressing{f}.stageAddresses()
	}
	whole, err := f.staged.Over(t.objects)
	if err != nil {
		f.log.Error("the definition in the store cannot be read; the hosts keep the one before", "revision",
			t.revision, "err", err)
	} else if whole.Hash() != f.inventory.Objects().Hash() || b.Reset || t.revision != f.revision {
		f.define(whole, t.revision)
	}
	if t.rolled {
		withheld{f}.rolled(held)
	}
	f.wake()
}

// ownChanged takes in that what capabilities have for a host is another; nil for no host. The caller holds the lock.
func ownChanged(f *fleet, h *host) {
	switch {
	case h == nil:
	case f.inventory.HasSettings(): // those of its ports are part of what it is to have
		contents{f}.renew(h)
	case h.conn != nil:
		h.conn.poke()
	}
}
