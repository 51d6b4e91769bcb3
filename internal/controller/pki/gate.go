package pki

import (
	"sync"

	"heddle/internal/identity"
)

// Gate knows what is revoked now and who is connected: at the instant at which the list changes, it cuts those off who
// stand on it.
type Gate struct {
	mu   sync.Mutex
	list *Revocations
	in   map[*entry]struct{}
}

type entry struct {
	peer *identity.Peer
	cut  func(error)
}

// NewGate is a gate with a list.
func NewGate(list *Revocations) *Gate {
	return &Gate{list: list, in: map[*entry]struct{}{}}
}

// Check returns an error if the peer is revoked now: for Server.Revoked.
func (g *Gate) Check(p *identity.Peer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.list.Check(p)
}

// Enter is called for each stream, which calls leave when it ends. If its peer is revoked meanwhile, cut is called
// once, from the goroutine that calls Set: it must not wait. Of a peer that is revoked already, it returns the error.
func (g *Gate) Enter(p *identity.Peer, cut func(error)) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.list.Check(p); err != nil {
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
