package addresses

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// hostWait is for how long imported addresses wait for their host.
const hostWait = 30 * 24 * time.Hour

// Grant is addresses that are given or taken back, made on one state of the book.
type Grant struct {
	changed  map[string][]inventory.Granted // by host; nil for none any more
	versions map[string]int64
	until    map[string]time.Time // of hosts that have not joined
	book     int64
	needed   bool // the book is written, too
}

// Of are the addresses that a host has with the grant; nil is for one that changes nothing.
func (g *Grant) Of(b *Book, host string) []inventory.Granted {
	if g != nil {
		if list, ok := g.changed[host]; ok {
			return list
		}
	}
	return b.Of(host)
}

// Need is whose addresses a grant is about, and by what.
type Need struct {
	Hosts []inventory.Member
	// Definition says which host ports there are; those of Also count as well: they are of definitions that some hosts
	// still have.
	Definition *inventory.Inventory
	Also       func() []*inventory.Inventory
	// More are addresses for hosts that have none, which an import brings: also of hosts that have not joined yet.
	More map[string][]inventory.Granted
	// Joined reports whether a host has joined; it is asked about those of More.
	Joined func(host string) bool
}

// Grant makes the grant of the addresses that hosts need. full are the pools that are too small.
func (b *Book) Grant(n Need) (g *Grant, full []*inventory.Exhausted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return grantOf(n, b.all(), b.versions, b.version)
}

// grantOf makes the grant of the addresses that hosts need, on the book's version: hosts have these, from objects of
// these versions.
func grantOf(n Need, have map[string][]inventory.Granted, versions map[string]int64, book int64) (g *Grant,
	full []*inventory.Exhausted) {
	g = &Grant{changed: map[string][]inventory.Granted{}, versions: map[string]int64{},
		until: map[string]time.Time{}, book: book}
	comes := map[string]bool{}
	for name, list := range n.More {
		if len(have[name]) == 0 {
			have[name], comes[name] = list, true
		}
	}
	if n.Definition.HasPools() || len(have) > 0 {
		g.changed, full = n.Definition.Grant(n.Hosts, have, n.Also()...)
	}
	for name := range n.More {
		if _, changed := g.changed[name]; !changed && comes[name] {
			g.changed[name] = have[name]
		}
		if !n.Joined(name) {
			g.until[name] = time.Now().Add(hostWait)
		}
	}
	for name := range g.changed {
		g.versions[name] = versions[name]
	}
	g.needed = n.Definition.HasPools() || len(g.changed) > 0
	return g, full
}

// Unused are the hosts that are gone and have addresses which do not wait for them, with the versions of their objects.
func (b *Book) Unused(gone func(host string) bool) map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := map[string]int64{}
	for name := range b.all() {
		if gone(name) && time.Now().After(b.until[name]) {
			list[name] = b.versions[name]
		}
	}
	return list
}

// Release adds to a grant that these hosts have no addresses any more.
func (g *Grant) Release(unused map[string]int64) {
	for name, version := range unused {
		g.changed[name], g.versions[name] = nil, version
	}
}

// Bound leaves a grant no more than the first hosts by name, and reports whether there are more.
func (g *Grant) Bound(most int) (more bool) {
	names := slices.Sorted(maps.Keys(g.changed))
	for _, name := range names[min(most, len(names)):] {
		delete(g.changed, name)
	}
	return len(names) > most
}

// Empty reports whether a grant changes no host's addresses.
func (g *Grant) Empty() bool { return len(g.changed) == 0 }

// Asked is a grant of what another controller says.
func Asked() *Grant { return &Grant{changed: map[string][]inventory.Granted{}} }

// Put adds an object with a host's addresses to a grant, Remove that the host has none.
func (g *Grant) Put(host string, object []byte) error {
	var doc document
	if err := json.Unmarshal(object, &doc); err != nil {
		return err
	}
	g.changed[host] = doc.Addresses
	return nil
}

// Remove adds to a grant that a host has no addresses.
func (g *Grant) Remove(host string) { g.changed[host] = nil }

// Objects are the changes of the objects, as of a change of the definition. They add to versions of what versions they
// are made.
func (g *Grant) Objects(versions map[slice.Key]int64) (c slice.Change, err error) {
	for _, name := range slices.Sorted(maps.Keys(g.changed)) {
		k := slice.Key{Kind: slice.Kind(Kind), Name: name}
		versions[k] = g.versions[name]
		if len(g.changed[name]) == 0 {
			if versions[k] > 0 {
				c.Removed = append(c.Removed, k)
			}
			continue
		}
		doc, err := json.Marshal(document{g.changed[name], g.until[name]})
		if err != nil {
			return c, err
		}
		c.Put = append(c.Put, slice.Object{Key: k, Doc: doc})
	}
	return c, nil
}

// Lock is the change of the book; none where nothing is granted.
func (g *Grant) Lock() ([]store.Change, error) {
	if !g.needed {
		return nil, nil
	}
	doc, err := json.Marshal(struct {
		At time.Time `json:"at"`
	}{time.Now()})
	return []store.Change{{Key: BookKey(), Doc: doc, IfVersion: g.book}}, err
}

// Changes are all changes of the store.
func (g *Grant) Changes() ([]store.Change, error) {
	versions := map[slice.Key]int64{}
	c, err := g.Objects(versions)
	if err != nil {
		return nil, err
	}
	lock, err := g.Lock()
	return append(definition.ChangesOf(c, versions), lock...), err
}

// Exhausted is the error about pools that are too small; nil for none.
func Exhausted(full []*inventory.Exhausted) error {
	if len(full) == 0 {
		return nil
	}
	lines := make([]string, len(full))
	for i, e := range full {
		lines[i] = e.Error()
	}
	return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
}
