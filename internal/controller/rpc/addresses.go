package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Which addresses of pools a host's ports have is in an object of the host's own, written in the transaction by which
// the host joins or the definition changes. All such transactions write one object besides, the book: of two that are
// made at the same time, on whichever controllers, the second is refused and made anew. So no address is given twice.

// Kinds of these objects.
const (
	addressKind store.Kind = "hostAddresses"
	bookKind    store.Kind = "addressBook"
)

func addressKey(host string) store.Key { return store.Key{Kind: addressKind, Name: host} }

func bookKey() store.Key { return store.Key{Kind: bookKind, Name: "current"} }

// addressDoc is what the store keeps of a host's addresses.
type addressDoc struct {
	Addresses []inventory.Granted `json:"addresses"`
	// Until is for how long they wait for a host that has not joined yet, after an import.
	Until time.Time `json:"until,omitzero"`
}

// addressesWait is for how long imported addresses wait for their host.
const addressesWait = 30 * 24 * time.Hour

// addressBook is which addresses hosts have, by the hosts' names. The fleet's lock guards it.
type addressBook struct {
	granted  map[string][]inventory.Granted
	versions map[string]int64
	version  int64 // of the book's own object
	// staged are those by a change of the definition that counts and is not folded yet.
	staged map[string][]inventory.Granted
	until  map[string]time.Time // as in addressDoc
}

func newAddressBook() *addressBook {
	return &addressBook{granted: map[string][]inventory.Granted{}, versions: map[string]int64{},
		until: map[string]time.Time{}}
}

// of are the addresses of a host.
func (b *addressBook) of(host string) []inventory.Granted {
	if list, ok := b.staged[host]; ok {
		return list
	}
	return b.granted[host]
}

// all are the addresses of all hosts.
func (b *addressBook) all() map[string][]inventory.Granted {
	all := maps.Clone(b.granted)
	maps.Copy(all, b.staged)
	return all
}

// addressing is the part of a fleet that knows which addresses of pools hosts have.
type addressing struct{ *fleet }

// takeAddresses takes in an object with a host's addresses. The caller holds the lock.
func (f addressing) takeAddresses(e store.Event) {
	b := f.addresses
	if e.Object == nil {
		delete(b.granted, e.Name)
		delete(b.versions, e.Name)
		delete(b.until, e.Name)
	} else {
		var doc addressDoc
		if err := json.Unmarshal(e.Object.Doc, &doc); err != nil {
			f.log.Error("a host's addresses in the store cannot be read", "host", e.Name, "err", err)
			return
		}
		b.granted[e.Name], b.versions[e.Name], b.until[e.Name] = doc.Addresses, e.Object.Version, doc.Until
	}
	contents(f).renew(f.names[e.Name])
}

// stageAddresses takes in the addresses by a change of the definition that is not folded yet. The caller holds the
// lock.
func (f addressing) stageAddresses() {
	was := f.addresses.staged
	f.addresses.staged = nil
	if c, err := f.staged.Counting(); err == nil {
		for _, o := range c.Put {
			var doc addressDoc
			if o.Kind == slice.Kind(addressKind) && json.Unmarshal(o.Doc, &doc) == nil {
				f.addresses.stage(o.Name, doc.Addresses)
				f.addresses.until[o.Name] = doc.Until
			}
		}
		for _, k := range c.Removed {
			if k.Kind == slice.Kind(addressKind) {
				f.addresses.stage(k.Name, nil)
			}
		}
	}
	for name := range was {
		contents(f).renew(f.names[name])
	}
	for name := range f.addresses.staged {
		contents(f).renew(f.names[name])
	}
}

func (b *addressBook) stage(host string, list []inventory.Granted) {
	if b.staged == nil {
		b.staged = map[string][]inventory.Granted{}
	}
	b.staged[host] = list
}

// members are the hosts, for the grant of addresses. The caller holds the lock.
func (f addressing) members() []inventory.Member {
	list := make([]inventory.Member, 0, len(f.hosts))
	for _, h := range f.hosts {
		list = append(list, inventory.Member{Name: h.doc.Name, Labels: h.doc.Labels})
	}
	return list
}

// grant is addresses that are given or taken back, made on one state of the book.
type grant struct {
	changed  map[string][]inventory.Granted // by host; nil for none any more
	versions map[string]int64
	until    map[string]time.Time // of hosts that have not joined
	book     int64
	needed   bool // the book is written, too
}

// of are the addresses that a host has with the grant; nil is for one that changes nothing.
func (g *grant) of(b *addressBook, host string) []inventory.Granted {
	if g == nil {
		return b.of(host)
	}
	if list, ok := g.changed[host]; ok {
		return list
	}
	return b.of(host)
}

// grant makes the grant of the addresses that these hosts need by a definition. The caller holds the lock.
func (f addressing) grant(v *inventory.Inventory, hosts []inventory.Member) (*grant, []*inventory.Exhausted) {
	return f.grantOver(v, hosts, nil)
}

// grantOver is grant, with addresses for hosts that have none, which an import brings: also of hosts that have not
// joined yet. The caller holds the lock.
func (f addressing) grantOver(v *inventory.Inventory, hosts []inventory.Member,
	more map[string][]inventory.Granted) (*grant, []*inventory.Exhausted) {
	have := f.addresses.all()
	for name, list := range more {
		if len(have[name]) == 0 {
			have[name] = list
		}
	}
	g := &grant{versions: map[string]int64{}, until: map[string]time.Time{}, book: f.addresses.version}
	var full []*inventory.Exhausted
	if v.HasPools() || len(have) > 0 {
		g.changed, full = v.Grant(hosts, have, withheld(f).also(v)...)
	}
	for name := range more {
		if _, changed := g.changed[name]; !changed && len(f.addresses.of(name)) == 0 {
			g.changed[name] = have[name]
		}
		if f.names[name] == nil {
			g.until[name] = time.Now().Add(addressesWait)
		}
	}
	for name := range g.changed {
		g.versions[name] = f.addresses.versions[name]
	}
	g.needed = v.HasPools() || len(g.changed) > 0
	return g, full
}

// objects are the changes of the objects, as of a change of the definition, and of what versions they are made.
func (g *grant) objects(versions map[slice.Key]int64) (c slice.Change, err error) {
	for _, name := range slices.Sorted(maps.Keys(g.changed)) {
		k := slice.Key{Kind: slice.Kind(addressKind), Name: name}
		versions[k] = g.versions[name]
		if len(g.changed[name]) == 0 {
			if versions[k] > 0 {
				c.Removed = append(c.Removed, k)
			}
			continue
		}
		doc, err := json.Marshal(addressDoc{g.changed[name], g.until[name]})
		if err != nil {
			return c, err
		}
		c.Put = append(c.Put, slice.Object{Key: k, Doc: doc})
	}
	return c, nil
}

// lock is the change of the book; none where nothing is granted.
func (g *grant) lock() []store.Change {
	if !g.needed {
		return nil
	}
	doc, err := json.Marshal(struct {
		At time.Time `json:"at"`
	}{time.Now()})
	if err != nil {
		panic(err) // a time is always written
	}
	return []store.Change{{Key: bookKey(), Doc: doc, IfVersion: g.book}}
}

// changes are all changes of the store.
func (g *grant) changes() ([]store.Change, error) {
	versions := map[slice.Key]int64{}
	c, err := g.objects(versions)
	return append(definition.ChangesOf(c, versions), g.lock()...), err
}

// exhausted is the error about pools that are too small; nil for none.
func exhausted(full []*inventory.Exhausted) error {
	if len(full) == 0 {
		return nil
	}
	lines := make([]string, len(full))
	for i, e := range full {
		lines[i] = e.Error()
	}
	return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
}

// mostTries is how often a transaction is made anew because others gave addresses at the same time.
const mostTries = 100

// granter is the part of a server that writes which host has which addresses.
type granter struct{ *Server }

// onBook calls write, which makes one transaction with the book, until the book was as it had read it, and the rollouts
// that end by it.
func (s granter) onBook(ctx context.Context, write func() error) (err error) {
	for range mostTries {
		if err = s.bookCurrent(ctx); err != nil {
			return err
		}
		var conflict *store.Conflict
		err = write()
		if !errors.As(err, &conflict) || conflict.Key != bookKey() && conflict.Key.Kind != kept.Kind {
			return err
		}
		if err := s.Store.Sync(ctx); err != nil {
			return err
		}
	}
	return err
}

// bookCurrent returns when the fleet has what the store has of the book.
func (s granter) bookCurrent(ctx context.Context) error {
	o, _ := s.Store.Get(bookKey())
	return until(ctx, s.fleet, func() bool { return s.fleet.addresses.version >= o.Version })
}

// joining are the changes by which a host that joins gets its addresses.
func (s granter) joining(ctx context.Context, name string, labels map[string]string) ([]store.Change, error) {
	if err := s.definitions().Fold(ctx); err != nil {
		return nil, err
	}
	f := s.fleet
	f.mu.Lock()
	g, full := addressing{f}.grant(f.inventory, []inventory.Member{{Name: name, Labels: labels}})
	f.mu.Unlock()
	if err := exhausted(full); err != nil {
		return nil, err
	}
	if len(g.changed) == 0 {
		return nil, nil
	}
	return g.changes()
}

// mostGrants is how many hosts' addresses one transaction writes.
const mostGrants = 100

// fillAddresses gives hosts the addresses that they lack: of a host that joined while the definition changed. Addresses
// of hosts that are gone are free again.
func (s granter) fillAddresses(ctx context.Context) error {
	for more := true; more; {
		if err := s.definitions().Fold(ctx); err != nil {
			return err
		}
		err := s.onBook(ctx, func() error {
			f := s.fleet
			f.mu.Lock()
			g, _ := addressing{f}.grant(f.inventory, addressing{f}.members())
			for name := range f.addresses.all() {
				if f.names[name] == nil && time.Now().After(f.addresses.until[name]) {
					g.changed[name], g.versions[name] = nil, f.addresses.versions[name]
				}
			}
			f.mu.Unlock()
			names := slices.Sorted(maps.Keys(g.changed))
			more = len(names) > mostGrants
			for _, name := range names[min(mostGrants, len(names)):] {
				delete(g.changed, name)
			}
			if len(g.changed) == 0 {
				return nil
			}
			list, err := g.changes()
			if err == nil {
				_, err = s.Store.Write(ctx, list)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fillFor has a host that lacks addresses get them, before it is handed its slice.
func (s granter) fillFor(ctx context.Context, h *host) {
	s.fleet.mu.Lock()
	_, err := s.fleet.target(h)
	lacks := err == nil && len(h.without) > 0
	s.fleet.mu.Unlock()
	if !lacks {
		return
	}
	if err := s.filling.Do(ctx, s.fillAddresses); err != nil {
		s.Log.Warn("a host has not got its addresses", "host", s.fleet.keeper().nameOf(h), "err", err)
	}
}
