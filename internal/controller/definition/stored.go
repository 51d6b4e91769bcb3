package definition

import (
	"context"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Stored is the definition in the store, with the versions of its objects.
func Stored(st Store) (*slice.Set, map[slice.Key]int64) {
	set, versions := &slice.Set{}, map[slice.Key]int64{}
	for _, kind := range inventory.Kinds() {
		for _, o := range st.List(store.Kind(kind)) {
			k := slice.Key{Kind: kind, Name: o.Name}
			set.Put(slice.Object{Key: k, Doc: o.Doc})
			versions[k] = o.Version
		}
	}
	return set, versions
}

// Sync returns when all is read that was written before.
func (s Writer) Sync(ctx context.Context) error { return s.Store.Sync(ctx) }

// Read is the definition with its revision, and the versions of its objects.
func (s Writer) Read() (revision int64, have *slice.Set, versions map[slice.Key]int64) {
	current, _ := s.Store.Get(Key())
	have, versions = Stored(s.Store)
	return current.Version, have, versions
}
