package match

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/flaps"
	"heddle/internal/controller/part"
	"heddle/internal/slice"
)

// meetTime is for how long changes are gathered before hosts are brought together.
const meetTime = 20 * time.Millisecond

// Port is the port of an adapter, as a host of this controller has reported it last.
type Port struct {
	Host          string // its id
	Switch, Group string
	Generation    uint64
	Runs          bool // the guest runs there
}

// Known is what a controller knows of some adapters and hosts. It does not change.
type Known struct {
	Ports map[part.Adapter][]Port
	// Bound are the ids of the hosts that the adapters' static ports are bound on.
	Bound map[part.Adapter]string
	// Content is what the definition gives the hosts, by their ids; none for a host of which that is not known.
	Content map[string]*slice.Set
}

// serves reports whether a host may serve a port group.
func (k Known) serves(host, sw, group string) bool {
	set := k.Content[host]
	if set == nil {
		return false
	}
	_, ok := set.Get(slice.Key{Kind: slice.PortGroup, Name: sw + "/" + group})
	return ok
}

// Options are what a board needs.
type Options struct {
	Log *slog.Logger
	// Known says what the controller knows. It is called without the board's lock.
	Known func(adapters []part.Adapter, hosts []string) Known
	// Linger is for how long counts what a host has offered that has lost its connection, and what a controller said
	// last that does not answer any more.
	Linger time.Duration
	// Flaps are what hosts learn again and again: controllers tell it one another with what they tell of moves.
	Flaps *flaps.Hub
	Now   func() time.Time
}

// Board has the offers of hosts and what hosts are to know of them.
type Board struct {
	Options
	// wake holds one token when hosts have to be brought together anew, news when other controllers have to hear of it.
	wake, news chan struct{}

	mu    sync.Mutex
	hosts map[string]*host // by id
	// sources are the hosts that were found, by the offer.
	sources map[offerKey]chosen
	// wanted are the adapters of all offers, here and at other controllers.
	wanted map[part.Adapter]bool
	// moves are what hosts are to know, by their ids.
	moves map[string]*controllerv1.HostMoves
	// away is what other controllers have said last, by their ids, told what they were told.
	away map[string]awayMoves
	told map[string]*controllerv1.SharedMoves
}

// host is one of the cluster.
type host struct {
	id, name string
	conn     *part.Conn // nil where it is not connected to this controller
	since    time.Time  // of the end of its connection
	// told is what it was told by this connection; nil before the first message.
	told *controllerv1.HostMoves
	// warned: it has offered by this connection what is not its to offer, and that was logged.
	warned bool
	// offers are what it offers to take over, offered the adapters of them.
	offers  []*controllerv1.MoveOffer
	offered map[part.Adapter]bool
}

// chosen is the source of an offer, with the port's generation there.
type chosen struct {
	host       *host
	generation uint64
}

// id is the host's; "" for none.
func (c chosen) id() string {
	if c.host == nil {
		return ""
	}
	return c.host.id
}

// offerKey is an offer of a host.
type offerKey struct{ host, move string }

// New is a board without hosts.
func New(o Options) *Board {
	return &Board{Options: o, wake: make(chan struct{}, 1), news: make(chan struct{}, 1), hosts: map[string]*host{},
		sources: map[offerKey]chosen{}, moves: map[string]*controllerv1.HostMoves{}, away: map[string]awayMoves{},
		told: map[string]*controllerv1.SharedMoves{}}
}

// Run brings hosts together whenever something changes, until ctx ends.
func (b *Board) Run(ctx context.Context) {
	for {
		select {
		case <-b.wake:
		case <-b.Flaps.News():
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(meetTime):
		case <-ctx.Done():
			return
		}
		b.Match()
	}
}

// look says that hosts may have to be brought together anew. It does not block.
func (b *Board) look() { token(b.wake) }

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Joined implements part.Joiner.
func (b *Board) Joined(id, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[id] == nil {
		b.hosts[id] = &host{id: id, since: b.Now()}
	}
	b.hosts[id].name = name
}

// Remove implements part.Remover.
func (b *Board) Remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hosts, id)
	b.look()
}

// DefinitionChanged implements part.Definer: hosts may serve other port groups.
func (b *Board) DefinitionChanged() { b.look() }

// Connected implements part.Follower. What the host offered before is over.
func (b *Board) Connected(id string, c *part.Conn, first *controllerv1.FollowSliceRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil {
		return
	}
	h.conn, h.told, h.warned = c, nil, false
	b.offered(h, first.GetOffers())
	b.reported()
}

// Disconnected implements part.Follower.
func (b *Board) Disconnected(id string, c *part.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil && h.conn == c {
		h.conn, h.since = nil, b.Now()
		b.look()
	}
}

// Hear implements part.Hearer.
func (b *Board) Hear(id string, c *part.Conn, m *controllerv1.FollowSliceRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.conn != c {
		return
	}
	if m.GetReport() != nil || m.GetChange() != nil {
		b.reported()
	}
	if o := m.GetOffers(); o != nil {
		b.offered(h, o)
	}
}

// reported takes in that a host has reported its ports, by which hosts may have to be brought together anew. The caller
// holds the lock.
func (b *Board) reported() {
	if len(b.wanted) > 0 {
		b.look()
	}
}

// Objects implements part.Speaker. A host that has been told of no move since it connected goes on with what it was
// told before, by whichever controller.
func (b *Board) Objects(id string, c *part.Conn, m part.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.conn != c {
		return
	}
	now := b.moves[id]
	if now == nil && h.told != nil {
		now = &controllerv1.HostMoves{}
	}
	if now == nil || proto.Equal(now, h.told) {
		return
	}
	m().Moves, h.told = now, now
}

// lingers reports whether a host has lost its connection a moment ago. The caller holds the lock.
func (b *Board) lingers(h *host) bool { return h.conn == nil && b.Now().Sub(h.since) < b.Linger }
