package adapters

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/peers"
)

// Controllers tell one another which adapters of VMs run on their hosts, so that one VM on hosts of two controllers is
// noticed. Each keeps of the others' only what runs on its own hosts, too.

const (
	// gatherTime is for how long changes are gathered before they are told.
	gatherTime = 50 * time.Millisecond
	// mostShared is how many adapters one message has.
	mostShared = 4096
)

// runsAway is an adapter that runs on a host of another controller.
type runsAway struct {
	controller string
	arrived    bool
	gen        uint64
	sure       map[string]uint64 // as of port
	since      time.Time         // when this controller heard of it first
	confirmed  time.Time         // and last
}

// sharing is what is told to other controllers.
type sharing struct {
	news map[part.Adapter]bool
	wake chan struct{} // holds one token when there are news
	// away are adapters on hosts of other controllers that run on hosts of this one, too, by the hosts' ids.
	away map[part.Adapter]map[string]*runsAway
	// open are adapters to be looked at again: what is known of them rests on a time.
	open map[part.Adapter]bool
	// doubts are hosts that were in conflict about an adapter, and of which it is not known here whether it runs there
	// still. doubtful holds one token when there are new ones.
	doubts   map[part.Adapter][]string
	doubtful chan struct{}
}

func newSharing() sharing {
	return sharing{news: map[part.Adapter]bool{}, wake: make(chan struct{}, 1),
		away: map[part.Adapter]map[string]*runsAway{}, open: map[part.Adapter]bool{},
		doubts: map[part.Adapter][]string{}, doubtful: make(chan struct{}, 1)}
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// changed says that an adapter began or ended to run on a host.
func (s sharing) changed(n part.Adapter) {
	s.news[n] = true
	token(s.wake)
}

// runsAt are the ids of the hosts of other controllers on which an adapter runs.
func (s sharing) runsAt(n part.Adapter) []string {
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

// Share tells the other controllers, until ctx ends. every is how often that is told anew for adapters in conflict, and
// how soon a controller that did not answer is told everything.
func (b *Book) Share(ctx context.Context, roster *peers.Roster, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	synced := map[string]bool{} // the controllers that have been told everything, by id
	for {
		regular, ended := due(ctx, tick, b.sharing.wake)
		if ended {
			return
		}
		if regular {
			b.lookAgain()
		}
		news := b.News()
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, c := range roster.Others() {
			items := news
			mu.Lock()
			knows := synced[c.ID]
			mu.Unlock()
			if !knows {
				items = b.Running(nil)
			}
			all.Go(func() {
				told := b.tell(ctx, roster, c, items)
				mu.Lock()
				defer mu.Unlock()
				synced[c.ID] = told
			})
		}
		all.Wait()
	}
}

// tell tells one other controller, and takes in what that one says.
func (b *Book) tell(ctx context.Context, roster *peers.Roster, c peers.Controller,
	items []*controllerv1.SharedAdapter) bool {
	for some := range slices.Chunk(items, mostShared) {
		got, err := peers.AskOne(ctx, roster, c, peers.AskTime, func(ctx context.Context, k *peers.Link) (
			*controllerv1.ShareAdaptersResponse, error) {
			return k.ShareAdapters(ctx, &controllerv1.ShareAdaptersRequest{Adapters: some})
		})
		if err != nil {
			return false
		}
		b.Learn(c.ID, got.GetAdapters())
	}
	return true
}

// News are the adapters that other controllers have to hear of: those that are new, and those in conflict.
func (b *Book) News() []*controllerv1.SharedAdapter {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := b.sharing.news
	b.sharing.news = map[part.Adapter]bool{}
	list := make([]*controllerv1.SharedAdapter, 0, len(news))
	for n := range news {
		if a := b.shared(n); len(a.GetHosts()) > 0 || a.GetKnown() {
			list = append(list, a)
		}
	}
	return list
}

// Running are adapters that run on hosts of this controller: all, or those that a list of another one asks for.
func (b *Book) Running(asked []*controllerv1.SharedAdapter) (list []*controllerv1.SharedAdapter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range asked {
		if a := b.shared(part.AdapterOf(q.GetVm(), q.GetAdapter())); len(a.GetHosts()) > 0 || q.GetKnown() {
			list = append(list, a)
		}
	}
	if asked != nil {
		return list
	}
	for n := range b.index.running {
		if a := b.shared(n); len(a.GetHosts()) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// shared is an adapter as other controllers are told of it. The caller holds the lock.
func (b *Book) shared(n part.Adapter) *controllerv1.SharedAdapter {
	a := &controllerv1.SharedAdapter{Vm: n.VM, Adapter: n.Name,
		Known: len(b.sharing.away[n])+len(b.sharing.doubts[n]) > 0}
	for _, h := range b.index.on(n) {
		p := h.running[n]
		one := &controllerv1.SharedHost{Host: h.id, Arrived: p.arrived, Generation: p.gen}
		for _, id := range slices.Sorted(maps.Keys(p.sure)) {
			one.Sure = append(one.Sure, &controllerv1.SharedRival{Host: id, Generation: p.sure[id]})
		}
		a.Hosts = append(a.Hosts, one)
	}
	return a
}

// Learn takes in where adapters run on the hosts of another controller: each item is all of that controller.
func (b *Book) Learn(controller string, items []*controllerv1.SharedAdapter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, item := range items {
		n := part.AdapterOf(item.GetVm(), item.GetAdapter())
		was := b.sharing.away[n]
		if len(b.index.running[n]) == 0 {
			if was != nil {
				delete(b.sharing.away, n)
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
			if here := b.hosts[h.GetHost()]; here == nil || here.conn != nil {
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
		if b.sharing.away[n] = next; len(next) == 0 {
			delete(b.sharing.away, n)
		}
		b.weigh(n)
	}
}

// lookAgain looks again at what may not be so any more, and has what is in conflict told again.
func (b *Book) lookAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := b.sharing.open
	b.sharing.open = map[part.Adapter]bool{}
	for n, hosts := range b.sharing.away {
		b.sharing.news[n], open[n] = true, true
		for id, a := range hosts {
			if here := b.hosts[id]; here == nil || here.conn != nil ||
				time.Since(a.confirmed) > b.Linger {
				delete(hosts, id)
			}
		}
		if len(hosts) == 0 || len(b.index.running[n]) == 0 {
			delete(b.sharing.away, n)
		}
	}
	for n := range b.sharing.doubts {
		b.sharing.news[n] = true
	}
	for n := range open {
		b.weigh(n)
	}
}
