package match

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/peers"
)

// mostAway is how many offers of another controller count.
const mostAway = 1 << 16

// awayMoves is what another controller has said last.
type awayMoves struct {
	moves *controllerv1.SharedMoves
	at    time.Time
	ports map[part.Adapter][]*controllerv1.SharedPort
	hosts map[string]bool // those that are connected there, by their ids
}

// Share tells the other controllers, until ctx ends. A controller that is slow to answer keeps no other one waiting.
func (b *Board) Share(ctx context.Context, roster *peers.Roster, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	t := telling{busy: map[string]bool{}}
	for {
		again := false
		select {
		case <-tick.C:
			again = true
			b.forget(roster.Others())
		case <-b.news:
		case <-ctx.Done():
			return
		}
		for _, c := range roster.Others() {
			if !t.begin(c.ID) {
				continue
			}
			all.Go(func() {
				for more := true; more; more = t.end(c.ID) {
					b.tellOne(ctx, roster, c, again)
				}
			})
		}
	}
}

// telling is to which controllers something is on its way, and whether there is more for them by now.
type telling struct {
	mu   sync.Mutex
	busy map[string]bool // true where there is more
}

// begin is false where something is on its way already.
func (t *telling) begin(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, is := t.busy[id]
	if is {
		t.busy[id] = true
		return false
	}
	t.busy[id] = false
	return true
}

// end reports whether there is more.
func (t *telling) end(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := t.busy[id]
	if t.busy[id] = false; !more {
		delete(t.busy, id)
	}
	return more
}

// tellOne tells one other controller what it was not told, and takes in what that one says; again for what it was told,
// too, as it may have started anew since. One that has never heard of moves is not asked about none.
func (b *Board) tellOne(ctx context.Context, roster *peers.Roster, c peers.Controller, again bool) {
	now, known := b.SharedFor(c.ID)
	if proto.Equal(now, known) && (!again || empty(now)) || known == nil && empty(now) {
		return
	}
	got, err := peers.AskOne(ctx, roster, c, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.ShareMovesResponse, error) {
		return k.ShareMoves(ctx, &controllerv1.ShareMovesRequest{Moves: now})
	})
	if err != nil {
		b.Log.Debug("another controller was not told of moves", "controller", peers.NameOf(c), "err", err)
		b.wasTold(c.ID, nil)
		return
	}
	b.wasTold(c.ID, now)
	b.Learn(c.ID, got.GetMoves())
}

func empty(m *controllerv1.SharedMoves) bool {
	return len(m.GetOffers())+len(m.GetPorts())+len(m.GetAgain()) == 0
}

// wasTold notes what another controller was told; nil where it is not known whether it was.
func (b *Board) wasTold(id string, m *controllerv1.SharedMoves) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told[id] = m; m == nil {
		delete(b.told, id)
	}
}

// SharedFor is what another controller is to know, and what it was told; nil for nothing yet.
func (b *Board) SharedFor(id string) (now, told *controllerv1.SharedMoves) {
	asked := b.sharedAdapters(id)
	known := b.Known(slices.Collect(maps.Keys(asked)), nil)
	now = &controllerv1.SharedMoves{Again: b.Flaps.Shared()}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.own() {
		if !asked[o.adapter()] {
			continue // it came since, and is told the next time
		}
		shared := proto.CloneOf(o.MoveOffer)
		shared.Confirmed = min(shared.GetConfirmed(), 1) // that there is a copy, and not with each one
		now.Offers = append(now.Offers, &controllerv1.SharedOffer{Offer: shared, Host: o.of.id,
			Source: b.sources[o.key()].id(), Away: o.of.conn == nil, Old: b.oldReports(o.adapter(), known)})
	}
	said := map[part.Adapter]bool{}
	for _, o := range b.away[id].moves.GetOffers() {
		n := part.AdapterOf(o.GetOffer().GetVm(), o.GetOffer().GetAdapter())
		if said[n] || !asked[n] {
			continue
		}
		said[n] = true
		here := b.portsHere(n, known)
		slices.SortFunc(here, byName)
		for _, p := range here {
			if !p.Runs && p.host.offered[n] { // it waits to arrive there
				p.Generation = 0
			}
			now.Ports = append(now.Ports, &controllerv1.SharedPort{Vm: n.VM, Adapter: n.Name, Host: p.host.id,
				Switch: p.Switch, PortGroup: p.Group, Generation: p.Generation, Runs: p.Runs, Away: p.away})
		}
		now.Ports = append(now.Ports, b.gone(n, here, o.GetOld())...)
	}
	return now, b.told[id]
}

// sharedAdapters are those of this controller's offers, and those that another controller asks for by its own.
func (b *Board) sharedAdapters(id string) map[part.Adapter]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[part.Adapter]bool{}
	for _, o := range b.own() {
		all[o.adapter()] = true
	}
	for _, o := range b.away[id].moves.GetOffers() {
		all[part.AdapterOf(o.GetOffer().GetVm(), o.GetOffer().GetAdapter())] = true
	}
	return all
}

// oldReports are the hosts that have reported the port of an adapter, here or to another controller, before they lost
// their connection there. The caller holds the lock.
func (b *Board) oldReports(n part.Adapter, known Known) (ids []string) {
	list, _ := b.portsSaid(n, known)
	for _, s := range list {
		if s.away {
			ids = append(ids, s.host.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// gone are those of some hosts that are connected here and are none of those that have a port of an adapter. The caller
// holds the lock.
func (b *Board) gone(n part.Adapter, here []source, ids []string) (list []*controllerv1.SharedPort) {
	for _, id := range ids[:min(len(ids), mostAway)] {
		h := b.hosts[id]
		if h == nil || h.conn == nil || slices.ContainsFunc(here, func(s source) bool { return s.host == h }) {
			continue
		}
		list = append(list, &controllerv1.SharedPort{Vm: n.VM, Adapter: n.Name, Host: id, Gone: true})
	}
	return list
}

// Learn takes in all that another controller knows of moves.
func (b *Board) Learn(id string, m *controllerv1.SharedMoves) {
	if m == nil {
		m = &controllerv1.SharedMoves{}
	}
	if b.learn(id, m) {
		b.look()
	}
}

// learn is Learn without what is learned again and again; false where nothing is another than it was.
func (b *Board) learn(id string, m *controllerv1.SharedMoves) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.away[id]
	if proto.Equal(was.moves, m) || was.moves == nil && empty(m) {
		if was.moves != nil {
			was.at = b.Now()
			b.away[id] = was
		}
		return false
	}
	next := awayMoves{moves: m, at: b.Now(), ports: map[part.Adapter][]*controllerv1.SharedPort{},
		hosts: map[string]bool{}}
	m.Offers = m.GetOffers()[:min(len(m.GetOffers()), mostAway)]
	for _, o := range m.GetOffers() {
		if o.GetAway() {
			continue
		}
		next.hosts[o.GetHost()] = true
		if h := b.hosts[o.GetHost()]; h != nil && h.conn == nil {
			b.ended(h) // what it offered here
		}
	}
	for _, p := range m.GetPorts() {
		n := part.AdapterOf(p.GetVm(), p.GetAdapter())
		next.ports[n] = append(next.ports[n], p)
	}
	if b.away[id] = next; empty(m) {
		delete(b.away, id)
	}
	b.Flaps.Learn(id, m.GetAgain()) // with the lock, so that both end with the same message
	return true
}

// elsewhereTime is how long after a host has connected to another controller what it offered here counts no more: that
// one says before what the host offers now, so that nothing is taken back in between.
const elsewhereTime = 2 * time.Second

// WentElsewhere takes in that a host has connected to another controller.
func (b *Board) WentElsewhere(id string) {
	time.AfterFunc(elsewhereTime, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if h := b.hosts[id]; h != nil && h.conn == nil {
			b.ended(h)
		}
	})
}

// forget gives up what is no longer so: what controllers said that have gone, or have not answered for long, and the
// offers of hosts that have been without a controller for long.
func (b *Board) forget(others []peers.Controller) {
	b.given(others)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.hosts {
		if h.conn == nil && !b.lingers(h) {
			b.ended(h)
		}
	}
}

// given forgets what controllers said that have gone, or have not answered for long.
func (b *Board) given(others []peers.Controller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, said := range b.away {
		there := slices.ContainsFunc(others, func(c peers.Controller) bool { return c.ID == id })
		if !there || b.Now().Sub(said.at) > b.Linger {
			delete(b.away, id)
			b.Flaps.Learn(id, nil)
			b.look()
		}
	}
}
