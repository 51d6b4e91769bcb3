package rpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// Where the two hosts of a move are connected to different controllers, the target's tells the source's what the target
// offers, hears which hosts have the port there, and says which of them it has chosen.

// mostAway is how many offers of another controller count.
const mostAway = 1 << 16

// awayMoves is what another controller has said last.
type awayMoves struct {
	moves *controllerv1.SharedMoves
	at    time.Time
	ports map[nic][]*controllerv1.SharedPort
	hosts map[string]bool // those that are connected there, by their ids
}

// ferrying is the half of a server that speaks with other controllers of moves.
type ferrying struct{ *Server }

// share tells the other controllers, until ctx ends. A controller that is slow to answer keeps no other one waiting.
func (s ferrying) share(ctx context.Context) {
	tick := time.NewTicker(s.ShareTime)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	t := telling{busy: map[string]bool{}}
	for {
		again := false
		select {
		case <-tick.C:
			again = true
			offering{s.fleet}.forget(s.Others())
		case <-s.fleet.meeting.news:
		case <-ctx.Done():
			return
		}
		for _, c := range s.Others() {
			if !t.begin(c.ID) {
				continue
			}
			all.Go(func() {
				for more := true; more; more = t.end(c.ID) {
					s.tellMoves(ctx, c, again)
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

// tellMoves tells one other controller what it was not told, and takes in what that one says; again for what it was
// told, too, as it may have started anew since. One that has never heard of moves is not asked about none.
func (s ferrying) tellMoves(ctx context.Context, c peers.Controller, again bool) {
	f := offering{s.fleet}
	now, known := f.sharedFor(c.ID)
	if proto.Equal(now, known) && (!again || empty(now)) || known == nil && empty(now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peers.AskTime)
	defer cancel()
	got, err := peers.AskOne(ctx, s.Roster, c, func(ctx context.Context, k *peers.Link) (
		*controllerv1.ShareMovesResponse, error) {
		return k.ShareMoves(ctx, &controllerv1.ShareMovesRequest{Moves: now})
	})
	if err != nil {
		s.Log.Debug("another controller was not told of moves", "controller", peers.NameOf(c), "err", err)
		f.told(c.ID, nil)
		return
	}
	f.told(c.ID, now)
	f.learn(c.ID, got.GetMoves())
}

func empty(m *controllerv1.SharedMoves) bool {
	return len(m.GetOffers())+len(m.GetPorts())+len(m.GetAgain()) == 0
}

// ShareMoves takes in what another controller knows of moves, and answers with what this one does.
func (o others) ShareMoves(ctx context.Context, q *controllerv1.ShareMovesRequest) (
	*controllerv1.ShareMovesResponse, error) {
	peer, err := controllerOf(ctx)
	if err != nil {
		return nil, err
	}
	f := offering{o.fleet}
	f.learn(peer.Name.ID, q.GetMoves())
	now, _ := f.sharedFor(peer.Name.ID)
	return &controllerv1.ShareMovesResponse{Moves: now}, nil
}

// told notes what another controller was told; nil where it is not known whether it was.
func (f offering) told(id string, m *controllerv1.SharedMoves) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.meeting.told[id] = m; m == nil {
		delete(f.meeting.told, id)
	}
}

// sharedFor is what another controller is to know, and what it was told; nil for nothing yet.
func (f offering) sharedFor(id string) (now, told *controllerv1.SharedMoves) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now = &controllerv1.SharedMoves{Again: flapping(f).shared()}
	for _, o := range f.own() {
		shared := proto.CloneOf(o.MoveOffer)
		shared.Confirmed = min(shared.GetConfirmed(), 1) // that there is a copy, and not with each one
		now.Offers = append(now.Offers, &controllerv1.SharedOffer{Offer: shared, Host: o.of.id,
			Source: f.meeting.sources[o.key()].id(), Away: o.of.conn == nil, Old: f.oldReports(o.nic())})
	}
	asked := map[nic]bool{}
	for _, o := range f.meeting.away[id].moves.GetOffers() {
		n := nic{o.GetOffer().GetVm(), o.GetOffer().GetAdapter()}
		if asked[n] {
			continue
		}
		asked[n] = true
		here := f.sourcesHere(n)
		slices.SortFunc(here, func(a, b source) int { return byName(a.host, b.host) })
		for _, p := range here {
			if !p.runs && p.host.offered[n] { // it waits to arrive there
				p.gen = 0
			}
			now.Ports = append(now.Ports, &controllerv1.SharedPort{Vm: n.vm, Adapter: n.adapter, Host: p.host.id,
				Switch: p.sw, PortGroup: p.group, Generation: p.gen, Runs: p.runs, Away: p.away})
		}
		now.Ports = append(now.Ports, f.gone(n, o.GetOld())...)
	}
	return now, f.meeting.told[id]
}

// oldReports are the hosts that have reported the port of an adapter, here or to another controller, before they lost
// their connection there. The caller holds the lock.
func (f offering) oldReports(n nic) (ids []string) {
	list, _ := f.sourcesSaid(n)
	for _, s := range list {
		if s.away {
			ids = append(ids, s.host.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// gone are those of some hosts that are connected here and have no port of an adapter. The caller holds the lock.
func (f offering) gone(n nic, ids []string) (list []*controllerv1.SharedPort) {
	for _, id := range ids[:min(len(ids), mostAway)] {
		h := f.hosts[id]
		if h == nil || h.conn == nil {
			continue
		}
		_, runs := h.running[n]
		_, silent := h.silent[n]
		if !runs && !silent {
			list = append(list, &controllerv1.SharedPort{Vm: n.vm, Adapter: n.adapter, Host: id, Gone: true})
		}
	}
	return list
}

// learn takes in all that another controller knows of moves.
func (f offering) learn(id string, m *controllerv1.SharedMoves) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m == nil {
		m = &controllerv1.SharedMoves{}
	}
	was := f.meeting.away[id]
	if proto.Equal(was.moves, m) || was.moves == nil && empty(m) {
		if was.moves != nil {
			was.at = time.Now()
			f.meeting.away[id] = was
		}
		return
	}
	next := awayMoves{moves: m, at: time.Now(), ports: map[nic][]*controllerv1.SharedPort{}, hosts: map[string]bool{}}
	m.Offers = m.GetOffers()[:min(len(m.GetOffers()), mostAway)]
	for _, o := range m.GetOffers() {
		if o.GetAway() {
			continue
		}
		next.hosts[o.GetHost()] = true
		if h := f.hosts[o.GetHost()]; h != nil && h.conn == nil {
			h.offers, h.offered = nil, nil // what it offered here is over
		}
	}
	for _, p := range m.GetPorts() {
		n := nic{p.GetVm(), p.GetAdapter()}
		next.ports[n] = append(next.ports[n], p)
	}
	if f.meeting.away[id] = next; empty(m) {
		delete(f.meeting.away, id)
	}
	f.meeting.look()
}

// elsewhereTime is how long after a host has connected to another controller what it offered here counts no more: that
// one says before what the host offers now, so that nothing is taken back in between.
const elsewhereTime = 2 * time.Second

// wentElsewhere takes in that a host has connected to another controller.
func (f offering) wentElsewhere(id string) {
	time.AfterFunc(elsewhereTime, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if h := f.hosts[id]; h != nil && h.conn == nil && len(h.offers) > 0 {
			h.offers, h.offered = nil, nil
			f.meeting.look()
		}
	})
}

// forget gives up what is no longer so: what controllers said that have gone, or have not answered for long, and the
// offers of hosts that have been without a controller for long.
func (f offering) forget(others []peers.Controller) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, said := range f.meeting.away {
		there := slices.ContainsFunc(others, func(c peers.Controller) bool { return c.ID == id })
		if !there || time.Since(said.at) > f.sharing.linger {
			delete(f.meeting.away, id)
			f.meeting.look()
		}
	}
	for _, h := range f.hosts {
		if len(h.offers) > 0 && h.conn == nil && !f.keeper().lingering(h) {
			h.offers, h.offered = nil, nil
			f.meeting.look()
		}
	}
}
