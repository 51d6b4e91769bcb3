package rpc

import (
	"context"
	"errors"

	"heddle/internal/controller/addresses"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/store"
)

// addressing is the part of a fleet that grants its hosts addresses.
type addressing struct{ *fleet }

// takeAddresses takes in what became of the addresses of a host, or of the book. The caller holds the lock.
func (f addressing) takeAddresses(e store.Event) {
	if err := f.addresses.Take(e); err != nil {
		f.log.Error("a host's addresses in the store cannot be read", "host", e.Name, "err", err)
		return
	}
	if e.Kind == addresses.Kind {
		contents(f).renew(f.names[e.Name])
	}
}

// stageAddresses takes in the addresses by a change of the definition that is not folded yet. The caller holds the
// lock.
func (f addressing) stageAddresses() {
	c, _ := f.staged.Counting() // one that cannot be read grants nothing
	for name := range f.addresses.Stage(c) {
		contents(f).renew(f.names[name])
	}
}

// members are the hosts, for the grant of addresses. The caller holds the lock.
func (f addressing) members() []inventory.Member {
	list := make([]inventory.Member, 0, len(f.hosts))
	for _, h := range f.hosts {
		list = append(list, inventory.Member{Name: h.doc.Name, Labels: h.doc.Labels})
	}
	return list
}

// grant makes the grant of the addresses that hosts need by a definition; more are addresses that an import brings. The
// caller holds the lock.
func (f addressing) grant(v *inventory.Inventory, hosts []inventory.Member, more map[string][]inventory.Granted) (
	*addresses.Grant, []*inventory.Exhausted) {
	return f.addresses.Grant(addresses.Need{Hosts: hosts, Definition: v, More: more,
		Also:   func() []*inventory.Inventory { return withheld(f).also(v) },
		Joined: func(host string) bool { return f.names[host] != nil }})
}

// granted is grant of all hosts; it refuses a definition whose pools are too small.
func (f addressing) granted(v *inventory.Inventory, more map[string][]inventory.Granted) (*addresses.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, full := f.grant(v, f.members(), more)
	return g, addresses.Exhausted(full)
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
		if !errors.As(err, &conflict) || conflict.Key != addresses.BookKey() && conflict.Key.Kind != kept.Kind {
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
	o, _ := s.Store.Get(addresses.BookKey())
	return until(ctx, s.fleet, func() bool { return s.fleet.addresses.Version() >= o.Version })
}

// joining are the changes by which a host that joins gets its addresses.
func (s granter) joining(ctx context.Context, name string, labels map[string]string) ([]store.Change, error) {
	if err := s.definitions().Fold(ctx); err != nil {
		return nil, err
	}
	f := s.fleet
	f.mu.Lock()
	g, full := addressing{f}.grant(f.inventory, []inventory.Member{{Name: name, Labels: labels}}, nil)
	f.mu.Unlock()
	if err := addresses.Exhausted(full); err != nil {
		return nil, err
	}
	if g.Empty() {
		return nil, nil
	}
	return g.Changes()
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
			g, _ := addressing{f}.grant(f.inventory, addressing{f}.members(), nil)
			g.Release(f.addresses.Unused(func(host string) bool { return f.names[host] == nil }))
			f.mu.Unlock()
			if more = g.Bound(mostGrants); g.Empty() {
				return nil
			}
			list, err := g.Changes()
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
		s.Log.Warn("a host has not got its addresses", "host", segmenting{s.fleet}.nameOf(h.id), "err", err)
	}
}
