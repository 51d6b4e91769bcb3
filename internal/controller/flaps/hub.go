package flaps

import (
	"cmp"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// mostHosts is for how many hosts of another controller the MACs count that these learned more than once.
const mostHosts = 1 << 14

// Hub has what all hosts have learned more than once, those of other controllers included.
type Hub struct {
	news chan struct{} // holds one token when something is another

	mu    sync.Mutex
	hosts map[string]*follower                   // by id
	away  map[string][]*controllerv1.SharedAgain // by the other controllers' ids
	now   map[string]*controllerv1.HostFlapping  // what hosts are to know, by their ids
}

// follower is a host of the cluster.
type follower struct {
	name  string
	conn  *part.Conn // nil where it is not connected to this controller
	again []*controllerv1.LearnedAgain
	told  *controllerv1.HostFlapping // by this connection; nil before the first message
}

// NewHub is a hub without hosts.
func NewHub() *Hub {
	return &Hub{news: make(chan struct{}, 1), hosts: map[string]*follower{},
		away: map[string][]*controllerv1.SharedAgain{}}
}

// News holds a token when something may have to be found anew.
func (h *Hub) News() <-chan struct{} { return h.news }

func (h *Hub) changed() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// Joined implements part.Joiner.
func (h *Hub) Joined(id, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hosts[id] == nil {
		h.hosts[id] = &follower{}
	}
	h.hosts[id].name = name
}

// Remove implements part.Remover.
func (h *Hub) Remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.hosts, id)
	h.changed()
}

// Connected implements part.Follower.
func (h *Hub) Connected(id string, c *part.Conn, first *controllerv1.FollowSliceRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.hosts[id]; f != nil {
		f.conn, f.told = c, nil
		h.said(f, first.GetOffers().GetAgain())
	}
}

// Disconnected implements part.Follower.
func (h *Hub) Disconnected(id string, c *part.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.hosts[id]; f != nil && f.conn == c {
		f.conn = nil
		h.changed()
	}
}

// Hear implements part.Hearer.
func (h *Hub) Hear(id string, c *part.Conn, m *controllerv1.FollowSliceRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.hosts[id]; f != nil && f.conn == c && m.GetOffers() != nil {
		h.said(f, m.GetOffers().GetAgain())
	}
}

// said takes in what a host has learned more than once. The caller holds the lock.
func (h *Hub) said(f *follower, list []*controllerv1.LearnedAgain) {
	was := f.again
	f.again = Checked(list)
	if !slices.EqualFunc(was, f.again, func(a, b *controllerv1.LearnedAgain) bool { return proto.Equal(a, b) }) {
		h.changed()
	}
}

// Shared is what other controllers are to know of this one's hosts.
func (h *Hub) Shared() (list []*controllerv1.SharedAgain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, f := range h.hosts {
		if f.conn != nil && len(f.again) > 0 {
			list = append(list, &controllerv1.SharedAgain{Host: id, Name: f.name, Again: f.again})
		}
	}
	slices.SortFunc(list, func(a, b *controllerv1.SharedAgain) int { return cmp.Compare(a.GetHost(), b.GetHost()) })
	return list
}

// Learn takes in all that another controller says of its hosts.
func (h *Hub) Learn(controller string, list []*controllerv1.SharedAgain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away[controller] = list[:min(len(list), mostHosts)]
	if len(list) == 0 {
		delete(h.away, controller)
	}
	h.changed()
}

// Find finds the MACs that several hosts have learned more than once, and wakes the connections of those that are to
// know.
func (h *Hub) Find() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Host
	for id, f := range h.hosts {
		if f.conn != nil && len(f.again) > 0 {
			all = append(all, Host{ID: id, Name: f.name, Again: f.again})
		}
	}
	for _, list := range h.away {
		for _, s := range list {
			if f := h.hosts[s.GetHost()]; f != nil && f.conn == nil {
				all = append(all, Host{ID: s.GetHost(), Name: f.name, Again: Checked(s.GetAgain())})
			}
		}
	}
	h.now = map[string]*controllerv1.HostFlapping{}
	for id, list := range Join(all) {
		h.now[id] = &controllerv1.HostFlapping{Macs: list}
	}
	for id, f := range h.hosts {
		if f.conn != nil && !proto.Equal(h.now[id], f.told) {
			f.conn.Poke()
		}
	}
}

// Objects implements part.Speaker.
func (h *Hub) Objects(id string, c *part.Conn, m part.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.hosts[id]
	if f == nil || f.conn != c {
		return
	}
	now := h.now[id]
	if now == nil && f.told != nil {
		now = &controllerv1.HostFlapping{}
	}
	if now == nil || proto.Equal(now, f.told) {
		return
	}
	m().Flapping, f.told = now, now
}
