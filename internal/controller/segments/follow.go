package segments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
)

// Host is who a host is.
type Host struct{ ID, Name string }

// Stream is a host's.
type Stream interface {
	Receive() (*controllerv1.FollowSegmentsRequest, error)
	Send(*controllerv1.FollowSegmentsResponse) error
}

// follower is a host that is connected.
type follower struct {
	host    Host
	session uint64
	older   bool // it knows no VLANs inside a VNI
	end     func(error)
	wake    chan struct{} // holds one token when something may have to be sent
	// The hub's lock guards the rest.
	cursors map[span.VNI]span.Cursor // of what the host has something of
	dirty   map[span.VNI]bool
	refused []uint32
	items   uint32
	greeted bool // it has been sent all that there is
	// tell are segments of which the host is asked what it knows; untold how many it has not said yet, until when it is
	// waited for.
	tell   []uint32
	untold map[span.VNI]bool
	until  time.Time
}

// stir says that a segment is another. f may be nil. The caller holds the hub's lock.
func (f *follower) stir(vni span.VNI) {
	if f == nil {
		return
	}
	f.dirty[vni] = true
	f.poke()
}

func (f *follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// ErrAgain ends the connection of a host that has connected again.
var ErrAgain = errors.New("the host has connected again")

// Follow hands a host who is where in its segments, and takes what it says, until ctx or the stream ends. first is its
// first message.
func (h *Hub) Follow(ctx context.Context, host Host, first *controllerv1.FollowSegmentsRequest, stream Stream) error {
	within := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &follower{host: host, older: !first.GetHello().GetVlans(), end: cancel, wake: make(chan struct{}, 1),
		cursors: map[span.VNI]span.Cursor{}, dirty: map[span.VNI]bool{}, untold: map[span.VNI]bool{}}
	if err := h.arrive(f, first); err != nil {
		return err
	}
	defer h.leave(within, f)
	go func() {
		for {
			m, err := stream.Receive()
			if err == nil {
				err = h.said(f, m)
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	return h.hand(ctx, f, stream)
}

// arrive takes in a host that connects. What it knows already by its hash is not sent.
func (h *Hub) arrive(f *follower, first *controllerv1.FollowSegmentsRequest) error {
	if first.GetHello() == nil || !first.GetReport().GetWhole() {
		return errors.New("the first message has a hello and all that the host has")
	}
	before, id := h.removed(), f.host.ID
	if h.Allowed(id) == nil {
		return errRemoved
	}
	r, refused, err := h.read(f, first.GetReport())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removals != before {
		return ErrAgain // it may have been this host
	}
	if old := h.followers[id]; old != nil {
		old.end(ErrAgain)
	}
	h.followers[id], f.refused = f, refused
	h.counted.Refused += uint64(len(refused))
	delete(h.away, id)
	f.session = h.table.NewSession(h.Now())
	f.items = uint32(h.take(f.host, f.session, r).Items)
	for _, have := range first.GetHello().GetHave() {
		vni := span.VNI(have.GetVni())
		hash, ok := span.ParseHash(have.GetHash())
		switch {
		case ok && h.table.IsMember(id, vni) && h.table.Hash(vni, f.older) == hash:
			f.cursors[vni] = h.table.Now(vni)
		case h.Now().Sub(h.started) < seedTime && h.table.IsMember(id, vni):
			f.tell, f.until = append(f.tell, uint32(vni)), h.Now().Add(tellTime)
			f.untold[vni] = true
			fallthrough
		default:
			f.cursors[vni] = span.Nothing()
		}
		f.dirty[vni] = true
	}
	for _, vni := range h.table.SegmentsOf(id) {
		f.dirty[vni] = true
	}
	f.poke()
	return nil
}

// read reads a report without the segments that the definition does not give the host.
func (h *Hub) read(f *follower, m *controllerv1.SegmentReport) (r span.Report, refused []uint32, err error) {
	if r, err = wire.ReadReport(m); err != nil {
		return r, nil, fmt.Errorf("what the host says of its segments: %w", err)
	}
	may := h.Allowed(f.host.ID)
	r.Segments = slices.DeleteFunc(r.Segments, func(s span.SegmentReport) bool {
		if s.Left || may[s.VNI] {
			return false
		}
		refused = append(refused, uint32(s.VNI))
		return true
	})
	return r, refused, nil
}

// leave takes in that a connection has ended.
func (h *Hub) leave(ctx context.Context, f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers[f.host.ID] != f {
		return
	}
	delete(h.followers, f.host.ID)
	h.later(context.WithoutCancel(ctx), f.host.ID, f.session)
}

// said takes in what a host says.
func (h *Hub) said(f *follower, m *controllerv1.FollowSegmentsRequest) error {
	for _, known := range m.GetKnown() {
		u, err := wire.ReadUpdate(known)
		if err != nil {
			return fmt.Errorf("what the host knew: %w", err)
		}
		for !h.seed(f, u) {
		}
	}
	r, refused, err := h.read(f, m.GetReport())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers[f.host.ID] != f {
		return ErrAgain
	}
	if m.GetReport() != nil {
		f.items = uint32(h.take(f.host, f.session, r).Items)
		for i := range r.Segments { // also those that it has left
			f.stir(r.Segments[i].VNI)
		}
	}
	if len(refused) > 0 || f.items > 0 {
		f.refused = append(f.refused, refused...)
		h.counted.Refused += uint64(len(refused))
		f.poke()
	}
	for _, vni := range m.GetAnew() {
		if h.table.IsMember(f.host.ID, span.VNI(vni)) {
			f.cursors[span.VNI(vni)] = span.Nothing()
			f.stir(span.VNI(vni))
		}
	}
	return nil
}

// seed takes over what a host knew of a segment, of hosts of the cluster; false if it was not clear which these are.
func (h *Hub) seed(f *follower, u *span.Update) bool {
	before := h.removed()
	may := h.Allowed(f.host.ID)
	known := map[string]bool{}
	for _, m := range u.Members {
		known[m.ID] = h.Allowed(m.ID) != nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !f.untold[u.VNI] || h.followers[f.host.ID] != f {
		return true // nobody asked
	}
	if h.removals != before {
		return false
	}
	delete(f.untold, u.VNI)
	if may[u.VNI] && !u.Gone {
		h.changed(h.table.Seed(u, func(id string) bool { return known[id] && h.away[id] == "" }))
	}
	f.poke()
	return true
}

// hand sends a host what it is to know, whenever that changes.
func (h *Hub) hand(ctx context.Context, f *follower, stream Stream) error {
	for {
		m, more, wait := h.next(f)
		if m != nil {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		if more {
			continue
		}
		var again <-chan time.Time
		if wait > 0 {
			again = time.After(wait)
		}
		if m != nil {
			select {
			case <-time.After(pace):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		select {
		case <-f.wake:
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next is the next message to a host, nil for none. more: there is more to send at once. wait is for how long what the
// host knew is waited for; 0 for nothing.
func (h *Hub) next(f *follower) (m *controllerv1.FollowSegmentsResponse, more bool, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m = &controllerv1.FollowSegmentsResponse{Refused: f.refused, Items: f.items, Tell: f.tell}
	f.refused, f.items, f.tell = nil, 0, nil
	if len(f.untold) > 0 {
		if wait = f.until.Sub(h.Now()); wait <= 0 {
			clear(f.untold)
		}
	}
	places := 0
	for vni := range f.dirty {
		if f.untold[vni] {
			continue
		}
		if places > mostPlaces {
			more = true
			break
		}
		delete(f.dirty, vni)
		u, n := h.update(f, vni)
		if u != nil {
			m.Updates = append(m.Updates, u)
			places += n + len(u.GetRemoved())
		}
	}
	if !more && len(f.untold) == 0 && !f.greeted {
		f.greeted, m.Current = true, true
	}
	h.counted.Updates += uint64(len(m.GetUpdates()))
	if len(m.GetUpdates())+len(m.GetRefused())+len(m.GetTell()) == 0 && m.GetItems() == 0 && !m.GetCurrent() {
		return nil, more, wait
	}
	return m, more, wait
}

// update is what makes what a host knows of a segment what it is to know; nil for nothing. The caller holds the lock.
func (h *Hub) update(f *follower, vni span.VNI) (*controllerv1.SegmentUpdate, int) {
	from, has := f.cursors[vni]
	if !h.table.IsMember(f.host.ID, vni) {
		delete(f.cursors, vni)
		if !has {
			return nil, 0
		}
		return wire.Update(&span.Update{VNI: vni, Gone: true}), 0
	}
	at := sharedKey{vni, f.older}
	if s, ok := h.shared[at]; ok && s.from == from {
		f.cursors[vni] = s.to
		h.share(at, s)
		return s.message, s.places
	}
	u, to, ok := h.table.Since(vni, from, f.older)
	f.cursors[vni] = to
	if !ok {
		return nil, 0
	}
	s := sharedUpdate{from: from, to: to, message: wire.Update(u), places: len(u.Put), left: 1}
	for _, id := range h.table.Span(vni) {
		if other := h.followers[id]; other != nil && other.older == f.older && other.cursors[vni] == from {
			s.left++
		}
	}
	h.share(at, s)
	return s.message, s.places
}

// share keeps an update that one more host is sent, while others need it. The caller holds the lock.
func (h *Hub) share(at sharedKey, s sharedUpdate) {
	if s.left--; s.left > 0 {
		h.shared[at] = s
	} else {
		delete(h.shared, at)
	}
}
