package granting

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
)

// The kinds of objects in the store.
const (
	grantKind store.Kind = "accessGrant" // by the grant's id
	groupKind store.Kind = "accessGroup" // by the group's name
)

// Keeper follows the grants and local groups in the store.
type Keeper struct {
	book atomic.Pointer[access.Book]
	log  *slog.Logger
}

// NewKeeper makes a keeper, which knows nothing before Take.
func NewKeeper(log *slog.Logger) *Keeper { return &Keeper{log: log} }

// Book is what is granted at present.
func (k *Keeper) Book() *access.Book { return k.book.Load() }

// Lister lists the objects of a kind.
type Lister interface {
	List(store.Kind) []store.Object
}

// Take takes in a batch of the store, and reports whether something is granted otherwise now.
func (k *Keeper) Take(b store.Batch, from Lister) bool {
	if !b.Reset && !slices.ContainsFunc(b.Events, func(e store.Event) bool {
		return e.Kind == grantKind || e.Kind == groupKind
	}) {
		return false
	}
	docs := func(kind store.Kind) map[string][]byte {
		all := map[string][]byte{}
		for _, o := range from.List(kind) {
			all[o.Name] = o.Doc
		}
		return all
	}
	book, faults := access.NewBook(docs(grantKind), docs(groupKind))
	for _, err := range faults {
		k.log.Error("the store has a grant or a group that can't be read", "err", err)
	}
	k.book.Store(book)
	return true
}
