package rpc

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// Controllers tell one another which adapters of VMs run on their hosts, so that one VM on hosts of two controllers is
// noticed. Each keeps of the others' only what runs on its own hosts, too.

const (
	// shareTime is how often that is told anew for adapters in conflict, and how soon a controller that did not answer
	// is told everything.
	shareTime = 5 * time.Second
	// gatherTime is for how long changes are gathered before they are told.
	gatherTime = 50 * time.Millisecond
	// mostShared is how many adapters one message has.
	mostShared = 4096
	// lingers is for how many times shareTime counts what another controller said that does not answer any more, and
	// what a host offered that has lost its controller: it may be on its way to another one.
	lingers = 6
)

// runsAway is an adapter that runs on a host of another controller.
type runsAway struct {
	controller string
	arrived    bool
	gen        uint64
	sure       map[string]uint64 // as of nicPort
	since      time.Time         // when this controller heard of it first
	confirmed  time.Time         // and last
}

// sharing is what is told to other controllers.
type sharing struct {
	news map[nic]bool
	wake chan struct{} // holds one token when there are news
	// away are adapters on hosts of other controllers that run on hosts of this one, too, by the hosts' ids.
	away map[nic]map[string]*runsAway
	// open are adapters to be looked at again: what is known of them rests on a time.
	open map[nic]bool
	// doubts are hosts that were in conflict about an adapter, and of which it is not known here whether it runs there
	// still. doubtful holds one token when there are new ones.
	doubts   map[nic][]string
	doubtful chan struct{}
	// linger is how long counts what another controller said last.
	linger time.Duration
}

func newSharing() *sharing {
	return &sharing{news: map[nic]bool{}, wake: make(chan struct{}, 1), away: map[nic]map[string]*runsAway{},
		open: map[nic]bool{}, doubts: map[nic][]string{}, doubtful: make(chan struct{}, 1),
		linger: lingers * shareTime}
}

// changed says that an adapter began or ended to run on a host.
func (s *sharing) changed(n nic) {
	s.news[n] = true
	token(s.wake)
}

// runsAt are the ids of the hosts of other controllers on which an adapter runs.
func (s *sharing) runsAt(n nic) []string {
	return slices.Sorted(maps.Keys(s.away[n]))
}

// due waits for the next tick, which is regular, or for a signal and then gatherTime, so that what comes together is
// dealt with together. ended reports that ctx has ended.
func due(ctx context.Context, tick *time.Ticker, signal <-chan struct{}) (regular, ended bool) {
	select {
	case <-tick.C:
		return true, false
	case <-signal:
		select {
		case <-time.After(gatherTime):
			return false, false
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return false, true
}

// share tells the other controllers, until ctx ends.
func (s *Server) share(ctx context.Context) {
	tick := time.NewTicker(s.ShareTime)
	defer tick.Stop()
	synced := map[string]bool{} // the controllers that have been told everything, by id
	for {
		regular, ended := due(ctx, tick, s.fleet.sharing.wake)
		if ended {
			return
		}
		if regular {
			s.fleet.keeper().lookAgain()
		}
		news := s.fleet.keeper().takeNews()
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, c := range s.Others() {
			items := news
			mu.Lock()
			knows := synced[c.ID]
			mu.Unlock()
			if !knows {
				items = s.fleet.keeper().running(nil)
			}
			all.Go(func() {
				told := s.tell(ctx, c, items)
				mu.Lock()
				defer mu.Unlock()
				synced[c.ID] = told
			})
		}
		all.Wait()
	}
}

// tell tells one other controller, and takes in what that one says.
func (s *Server) tell(ctx context.Context, c peers.Controller, items []*controllerv1.SharedAdapter) bool {
	for part := range slices.Chunk(items, mostShared) {
		ctx, cancel := context.WithTimeout(ctx, peers.AskTime)
		got, err := peers.AskOne(ctx, s.Roster, c, func(ctx context.Context, k *peers.Link) (
			*controllerv1.ShareAdaptersResponse,
			error) {
			return k.ShareAdapters(ctx, &controllerv1.ShareAdaptersRequest{Adapters: part})
		})
		cancel()
		if err != nil {
			return false
		}
		s.fleet.keeper().learn(c.ID, got.GetAdapters())
	}
	return true
}

// ShareAdapters takes in which adapters run on hosts of another controller, and answers with those that run here too.
func (o others) ShareAdapters(ctx context.Context, q *controllerv1.ShareAdaptersRequest) (
	*controllerv1.ShareAdaptersResponse, error) {
	peer, err := controllerOf(ctx)
	if err != nil {
		return nil, err
	}
	k := o.fleet.keeper()
	k.learn(peer.Name.ID, q.GetAdapters())
	return &controllerv1.ShareAdaptersResponse{Adapters: k.running(q.GetAdapters())}, nil
}

// takeNews are the adapters that other controllers have to hear of: those that are new, and those in conflict.
func (f portKeeper) takeNews() []*controllerv1.SharedAdapter {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := f.sharing.news
	f.sharing.news = map[nic]bool{}
	list := make([]*controllerv1.SharedAdapter, 0, len(news))
	for n := range news {
		if a := f.shared(n); len(a.GetHosts()) > 0 || a.GetKnown() {
			list = append(list, a)
		}
	}
	return list
}

// running are adapters that run on hosts of this controller: all, or those that a list of another one asks for.
func (f portKeeper) running(asked []*controllerv1.SharedAdapter) (list []*controllerv1.SharedAdapter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range asked {
		if a := f.shared(nic{q.GetVm(), q.GetAdapter()}); len(a.GetHosts()) > 0 || q.GetKnown() {
			list = append(list, a)
		}
	}
	if asked != nil {
		return list
	}
	for n := range f.statics.running {
		if a := f.shared(n); len(a.GetHosts()) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// shared is an adapter as other controllers are told of it. The caller holds the lock.
func (f portKeeper) shared(n nic) *controllerv1.SharedAdapter {
	a := &controllerv1.SharedAdapter{Vm: n.vm, Adapter: n.adapter,
		Known: len(f.sharing.away[n])+len(f.sharing.doubts[n]) > 0}
	for _, h := range f.statics.on(n) {
		p := h.running[n]
		one := &controllerv1.SharedHost{Host: h.id, Arrived: p.arrived, Generation: p.gen}
		for _, id := range slices.Sorted(maps.Keys(p.sure)) {
			one.Sure = append(one.Sure, &controllerv1.SharedRival{Host: id, Generation: p.sure[id]})
		}
		a.Hosts = append(a.Hosts, one)
	}
	return a
}

// lingering reports whether a host has lost its connection a moment ago. The caller holds the lock.
func (f portKeeper) lingering(h *host) bool {
	return h.conn == nil && time.Since(h.since) < f.sharing.linger
}

// learn takes in where adapters run on the hosts of another controller: each item is all of that controller.
func (f portKeeper) learn(controller string, items []*controllerv1.SharedAdapter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, item := range items {
		n := nic{item.GetVm(), item.GetAdapter()}
		was := f.sharing.away[n]
		if len(f.statics.running[n]) == 0 {
			if was != nil {
				delete(f.sharing.away, n)
			}
			continue
		}
		next := map[string]*runsAway{}
		for id, a := range was {
			if a.controller != controller {
				next[id] = a
			}
		}
		for _, h := range item.GetHosts() {
			if here := f.hosts[h.GetHost()]; here == nil || here.conn != nil {
				continue // it was removed, or is here by now
			}
			a := &runsAway{since: now}
			if old := was[h.GetHost()]; old != nil {
				a.since = old.since
			}
			a.controller, a.arrived, a.confirmed, a.gen = controller, h.GetArrived(), now, h.GetGeneration()
			for _, rival := range h.GetSure() {
				if a.sure == nil {
					a.sure = map[string]uint64{}
				}
				a.sure[rival.GetHost()] = rival.GetGeneration()
			}
			next[h.GetHost()] = a
		}
		if f.sharing.away[n] = next; len(next) == 0 {
			delete(f.sharing.away, n)
		}
		f.weigh(n)
	}
}

// lookAgain looks again at what may not be so any more, and has what is in conflict told again.
func (f portKeeper) lookAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.sharing.open
	f.sharing.open = map[nic]bool{}
	for n, hosts := range f.sharing.away {
		f.sharing.news[n], open[n] = true, true
		for id, a := range hosts {
			if here := f.hosts[id]; here == nil || here.conn != nil ||
				time.Since(a.confirmed) > f.sharing.linger {
				delete(hosts, id)
			}
		}
		if len(hosts) == 0 || len(f.statics.running[n]) == 0 {
			delete(f.sharing.away, n)
		}
	}
	for n := range f.sharing.doubts {
		f.sharing.news[n] = true
	}
	for n := range open {
		f.weigh(n)
	}
}
