package pki

import (
	"sync"

	"heddle/internal/identity"
)

// Gate knows what is revoked now and who is connected: at the instant at which that changes, it cuts those off whose
// certificates count no more.
type Gate struct {
	mu sync.Mutex
	// list is what an earlier version revoked, names are hosts and controllers with all their certificates, by
	// RevokedAs.
	list  *Revocations
	names map[string]Revocation
	// hosts are the certificates that count of each host, by its id.
	hosts map[string]Holding
	in    map[*entry]struct{}
}

type entry struct {
	peer *identity.Peer
	cut  func(error)
}

// NewGate is a gate with a list.
func NewGate(list *Revocations) *Gate {
	return &Gate{list: list, names: map[string]Revocation{}, hosts: map[string]Holding{}, in: map[*entry]struct{}{}}
}

// Check returns an error if the peer is revoked now: for Server.Revoked.
func (g *Gate) Check(p *identity.Peer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.check(p)
}

// check is Check for who holds the lock.
func (g *Gate) check(p *identity.Peer) error {
	if e, ok := g.names[RevokedAs(p.Name)]; ok { // first: the list may have lost what else it says
		return e.refuses(p)
	}
	if err := g.list.Check(p); err != nil {
		return err
	}
	if p.Name.Kind != identity.Host {
		return nil
	}
	return g.hosts[p.Name.ID].check(p)
}

// Enter is called for each stream, which calls leave when it ends. If its peer is revoked meanwhile, cut is called
// once, from the goroutine that calls Set: it must not wait. Of a peer that is revoked already, it returns the error.
func (g *Gate) Enter(p *identity.Peer, cut func(error)) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(p); err != nil {
		return nil, err
	}
	e := &entry{p, cut}
	g.in[e] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.in, e)
	}, nil
}

// Recheck cuts off who is refused by another check, and returns how many streams those were.
func (g *Gate) Recheck(check func(*identity.Peer) error) int {
	g.mu.Lock()
	cuts := map[*entry]error{}
	for e := range g.in {
		if err := check(e.peer); err != nil {
			cuts[e] = err
			delete(g.in, e)
		}
	}
	g.mu.Unlock()
	for e, err := range cuts { // without the lock, so that a cut may leave at once
		e.cut(err)
	}
	return len(cuts)
}

// Set takes a new list, cuts off who stands on it, and returns how many streams those were.
func (g *Gate) Set(list *Revocations) int {
	g.mu.Lock()
	g.list = list
	g.mu.Unlock()
	return g.Recheck(list.Check)
}

// SetNames takes all hosts and controllers that are revoked, by what RevokedAs says, cuts off who is one of them, and
// returns how many streams those were.
func (g *Gate) SetNames(names map[string]Revocation) int {
	g.mu.Lock()
	g.names = names
	g.mu.Unlock()
	return g.Recheck(g.check)
}

// SetName revokes a host or a controller, by what RevokedAs says; with nil it counts again.
func (g *Gate) SetName(as string, e *Revocation) int {
	g.mu.Lock()
	if e == nil {
		delete(g.names, as)
	} else {
		g.names[as] = *e
	}
	g.mu.Unlock()
	if e == nil {
		return 0
	}
	return g.Recheck(g.check)
}

// SetHosts takes the certificates that count of all hosts. Those of a host of which a later version is known stay.
func (g *Gate) SetHosts(hosts map[string]Holding) int {
	g.mu.Lock()
	next := map[string]Holding{}
	for id, h := range hosts {
		if was := g.hosts[id]; was.Version > h.Version {
			h = was
		}
		next[id] = h
	}
	g.hosts = next
	g.mu.Unlock()
	return g.Recheck(g.check)
}

// SetHost takes the certificates that count of one host, unless a later version of them is known: who renews one says
// so at once, and hears of the version before afterwards.
func (g *Gate) SetHost(id string, h Holding) int {
	g.mu.Lock()
	was := g.hosts[id]
	if was.Version > h.Version {
		g.mu.Unlock()
		return 0
	}
	g.hosts[id] = h
	g.mu.Unlock()
	if !was.narrowed(h) {
		return 0
	}
	return g.Recheck(g.check)
}

// DropHost forgets a host that was removed. Who removed it has revoked its name.
func (g *Gate) DropHost(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.hosts, id)
}
