package segments

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
)

// Times of a hub.
const (
	// pace is the least time between two messages to one host: what changes meanwhile goes together.
	pace = 5 * time.Millisecond
	// linger is how long a host may be without a controller before what it claims counts less than what others claim.
	linger = 15 * time.Second
	// seedTime is how long after its start a controller takes over from hosts what they knew of others.
	seedTime = time.Minute
	// tellTime is how long a host may take to say what it knew.
	tellTime = 10 * time.Second
)

// mostPlaces is how many locations one message has, beside those of the segment that goes beyond.
const mostPlaces = 16384

// Options are what a hub needs.
type Options struct {
	Log *slog.Logger
	// Allowed are the segments that the definition gives a host; nil for a host that is not of the cluster.
	Allowed func(id string) map[span.VNI]bool
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Linger is as the constant, which is the default.
	Linger time.Duration
}

// Hub is safe for concurrent use.
type Hub struct {
	Options
	started time.Time

	mu        sync.Mutex
	table     *span.Table
	followers map[string]*follower // hosts that are connected here, by id
	peers     map[*peer]bool
	shared    map[sharedKey]sharedUpdate
	away      map[string]string // hosts at other controllers, and at which
	heard     map[string]uint64 // how often each of these has said something
	counted   Counts
	removals  uint64 // how many hosts were taken out of the cluster
}

// Counts are for people who look at a controller.
type Counts struct {
	Segments, Hosts, MACs, Addresses, Contested int
	// Reports and Updates are how many messages hosts have sent, and how many segments' updates they were sent.
	Reports, Updates uint64
	// Refused is how many claims and segments of hosts were refused.
	Refused uint64
}

// sharedUpdate is the newest update of a segment: most hosts of a span need the same. It is kept until all of them were
// sent it: of 10,000 segments, the messages take more memory than what the table knows.
type sharedUpdate struct {
	from, to span.Cursor
	message  *controllerv1.SegmentUpdate
	places   int
	left     int // hosts of the span that are at the same point and were not sent it
}

// sharedKey is whom an update of a segment is for: hosts of this version, or of the one before.
type sharedKey struct {
	vni   span.VNI
	older bool
}

// New makes a hub.
func New(o Options) *Hub {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Linger == 0 {
		o.Linger = linger
	}
	return &Hub{Options: o, started: o.Now(), table: span.NewTable(), followers: map[string]*follower{},
		peers: map[*peer]bool{}, shared: map[sharedKey]sharedUpdate{}, away: map[string]string{},
		heard: map[string]uint64{}}
}

// changed wakes the hosts of segments that are another. The caller holds the lock.
func (h *Hub) changed(all span.Changed) {
	for vni := range all {
		delete(h.shared, sharedKey{vni, false})
		delete(h.shared, sharedKey{vni, true})
		for _, id := range h.table.Span(vni) {
			h.followers[id].stir(vni)
		}
	}
}

var errRemoved = errors.New("the host was taken out of the cluster")

// removed is how many hosts were taken out of the cluster. Who asks whether a host is of the cluster, which takes
// another lock, asks this before; if it is another once the hub is locked, the answer may be too old.
func (h *Hub) removed() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removals
}

// Remove forgets a host that was taken out of the cluster.
func (h *Hub) Remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.followers[id]; f != nil {
		f.end(errRemoved)
	}
	h.removals++
	delete(h.followers, id)
	delete(h.away, id)
	h.changed(h.table.Remove(id))
}

// Redefined takes hosts out of segments that the definition does not give them any more. Their agents do the same by
// themselves.
func (h *Hub) Redefined() {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.followers))
	h.mu.Unlock()
	for _, id := range ids {
		may := h.Allowed(id)
		h.mu.Lock()
		r := span.Report{}
		for _, vni := range h.table.SegmentsOf(id) {
			if !may[vni] {
				r.Segments = append(r.Segments, span.SegmentReport{VNI: vni, Left: true})
			}
		}
		if f := h.followers[id]; f != nil && len(r.Segments) > 0 {
			h.take(f.host, f.session, r)
			for i := range r.Segments {
				f.stir(r.Segments[i].VNI)
			}
		}
		h.mu.Unlock()
	}
}

// take takes in a host's report, and has other controllers told. The caller holds the lock.
func (h *Hub) take(host Host, session uint64, r span.Report) span.Refused {
	r.Session = session
	changed, refused := h.table.Report(host.ID, host.Name, r, h.Now())
	h.changed(changed)
	h.counted.Reports++
	h.counted.Refused += uint64(len(refused.Segments) + refused.Items)
	if len(h.peers) > 0 {
		h.table.Number(host.ID, &r)
		h.tellPeers(&controllerv1.HostSegments{Host: host.ID, Name: host.Name, Session: session,
			Report: wire.Report(&r)})
	}
	return refused
}

// disconnected takes in that a host lost its connection a while ago, unless it has another one by now.
func (h *Hub) disconnected(id string, session uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.followers[id]; f != nil && f.session > session {
		return
	}
	h.changed(h.table.Disconnected(id, session))
	h.tellPeers(&controllerv1.HostSegments{Host: id, Session: session, Away: true})
}

// later calls disconnected after the time that a host may be without a controller.
func (h *Hub) later(ctx context.Context, id string, session uint64) {
	time.AfterFunc(h.Linger, func() {
		if ctx.Err() == nil {
			h.disconnected(id, session)
		}
	})
}

// Counts are how much there is.
func (h *Hub) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.counted
	c.Hosts = len(h.table.Hosts())
	for _, vni := range h.table.VNIs() {
		n := h.table.Sizes(vni)
		c.Segments++
		c.MACs += n.MACs
		c.Addresses += n.Addresses
		c.Contested += n.Contested
	}
	return c
}
