package addresses

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Kinds of the objects of the store.
const (
	// Kind is of an object with a host's addresses, BookKind of the one that every transaction about them writes.
	Kind     store.Kind = "hostAddresses"
	BookKind store.Kind = "addressBook"
)

// Key is the key of a host's addresses.
func Key(host string) store.Key { return store.Key{Kind: Kind, Name: host} }

// BookKey is the key of the book.
func BookKey() store.Key { return store.Key{Kind: BookKind, Name: "current"} }

// document is what the store keeps of a host's addresses.
type document struct {
	Addresses []inventory.Granted `json:"addresses"`
	// Until is for how long they wait for a host that has not joined yet, after an import.
	Until time.Time `json:"until,omitzero"`
}

// Book is which addresses hosts have, by the hosts' names, as the store has it. Its methods may be called at any time.
type Book struct {
	mu       sync.Mutex
	granted  map[string][]inventory.Granted
	versions map[string]int64
	version  int64 // of the book's own object
	// staged are those by a change of the definition that counts and is not folded yet.
	staged map[string][]inventory.Granted
	until  map[string]time.Time // as in document
}

// New is an empty book.
func New() *Book {
	b := &Book{}
	b.Reset()
	return b
}

// Reset forgets all: the store is read anew.
func (b *Book) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted, b.versions = map[string][]inventory.Granted{}, map[string]int64{}
	b.until, b.staged, b.version = map[string]time.Time{}, nil, 0
}

// Of are the addresses of a host.
func (b *Book) Of(host string) []inventory.Granted {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(host)
}

// of is Of under the lock.
func (b *Book) of(host string) []inventory.Granted {
	if list, ok := b.staged[host]; ok {
		return list
	}
	return b.granted[host]
}

// All are the addresses of all hosts.
func (b *Book) All() map[string][]inventory.Granted {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all()
}

// all is All under the lock.
func (b *Book) all() map[string][]inventory.Granted {
	all := maps.Clone(b.granted)
	maps.Copy(all, b.staged)
	return all
}

// Version is that of the book's own object.
func (b *Book) Version() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

// Take takes in what became of an object of the store with a host's addresses, or of the book.
func (b *Book) Take(e store.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case e.Kind == BookKind && e.Object != nil:
		b.version = e.Object.Version
	case e.Kind == BookKind:
	case e.Object == nil:
		delete(b.granted, e.Name)
		delete(b.versions, e.Name)
		delete(b.until, e.Name)
	default:
		var doc document
		if err := json.Unmarshal(e.Object.Doc, &doc); err != nil {
			return fmt.Errorf("the addresses of host %s: %w", e.Name, err)
		}
		b.granted[e.Name], b.versions[e.Name], b.until[e.Name] = doc.Addresses, e.Object.Version, doc.Until
	}
	return nil
}

// Stage takes in the addresses by a change of the definition that counts and is not folded yet, in place of those by an
// earlier one. concerned are the hosts whose addresses may differ.
func (b *Book) Stage(c slice.Change) (concerned map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	concerned = map[string]bool{}
	for name := range b.staged {
		concerned[name] = true
	}
	b.staged = nil
	for _, o := range c.Put {
		var doc document
		if o.Kind == slice.Kind(Kind) && json.Unmarshal(o.Doc, &doc) == nil {
			b.stage(o.Name, doc.Addresses)
			b.until[o.Name] = doc.Until
		}
	}
	for _, k := range c.Removed {
		if k.Kind == slice.Kind(Kind) {
			b.stage(k.Name, nil)
		}
	}
	for name := range b.staged {
		concerned[name] = true
	}
	return concerned
}

func (b *Book) stage(host string, list []inventory.Granted) {
	if b.staged == nil {
		b.staged = map[string][]inventory.Granted{}
	}
	b.staged[host] = list
}
