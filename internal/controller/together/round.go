package together

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/slice"
)

// Bounds of what is asked about clocks while hosts prepare a change.
const (
	// closeEnough is by how much what is known of a host's clock may be wrong without that it is asked again.
	closeEnough = int64(500 * time.Microsecond)
	// mostQuestions is how often it is asked: a busy network does not become quieter by more.
	mostQuestions = 6
)

// Round has hosts that are connected to this controller prepare one change.
type Round struct {
	hub    *Hub
	change string
	asked  []*askedHost
}

// askedHost is a host that was asked, by a connection.
type askedHost struct {
	id, name string
	of       *preparation
	// questions is how often it was asked what its clock shows since.
	questions int
}

// Round begins to have hosts prepare a change.
func (h *Hub) Round(change string) *Round { return &Round{hub: h, change: change} }

// Ask asks a host, by its connection. set is what the change makes of its content.
func (r *Round) Ask(id, name, agent string, c *part.Conn, set func() (*slice.Set, error)) error {
	able := r.begin(id, name, agent, c)
	if !able {
		return nil
	}
	content, err := set()
	if err != nil {
		return err
	}
	r.hub.prepare(id, c, r.change, content)
	return nil
}

// begin has a host be one of those that were asked; it is false where it needs not be told.
func (r *Round) begin(id, name, agent string, c *part.Conn) (able bool) {
	p := r.hub.asks(id, c, r.change, agent)
	if p == nil {
		return false
	}
	r.asked = append(r.asked, &askedHost{id: id, name: name, of: p})
	return p.able
}

// asks has a host be asked for a change; nil where it has another connection by now.
func (h *Hub) asks(id string, c *part.Conn, change, agent string) *preparation {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of(id, c)
	if p == nil {
		return nil
	}
	p.id, p.sent, p.said, p.problems = change, true, false, nil
	if !p.able {
		p.said, p.problems = true, []string{"its agent (" + agent + ") does not know how: update it"}
	}
	return p
}

// prepare has a host told what the change makes of its content.
func (h *Hub) prepare(id string, c *part.Conn, change string, set *slice.Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.of(id, c); p != nil && p.id == change {
		p.set, p.sent, p.askClock = set, false, true
		c.Poke()
	}
}

// Await waits for the hosts as long as patience, and says how they stand.
func (r *Round) Await(ctx context.Context, patience time.Duration) ([]*controllerv1.PreparedHost, error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := slices.Clone(r.asked)
	for over := false; !over; {
		var changed <-chan struct{}
		if left, changed = r.hub.unsaid(left); len(left) == 0 {
			break
		}
		select {
		case <-changed:
		case <-wait.Done():
			over = true
		}
	}
	if ctx.Err() != nil && len(left) > 0 {
		return nil, ctx.Err()
	}
	return r.hub.stand(r.asked), nil
}

// unsaid is what is left of the hosts without those at the end that have said whether they are ready, and of whose
// clocks enough is known; changed is closed when that may be others.
func (h *Hub) unsaid(list []*askedHost) (left []*askedHost, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(list); i > 0; i-- {
		a := list[i-1]
		p := a.of
		if h.hosts[a.id] != p || len(p.problems) > 0 {
			continue
		}
		_, bound, known := p.clocks.Ahead(h.Ticks())
		if !p.open && !p.askClock && a.questions < mostQuestions && (!known || bound > closeEnough) {
			a.questions++
			p.askClock = true
			p.conn.Poke()
		}
		if !p.said || p.open || p.askClock {
			return list[:i], h.changed
		}
	}
	return nil, h.changed
}

// stand is how the hosts stand that were asked.
func (h *Hub) stand(asked []*askedHost) (list []*controllerv1.PreparedHost) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range asked {
		_, bound, known := a.of.clocks.Ahead(h.Ticks())
		list = append(list, &controllerv1.PreparedHost{Name: a.name,
			Ready:    known && a.of.said && len(a.of.problems) == 0,
			Problems: a.of.problems, Lost: h.hosts[a.id] != a.of, Bound: durationpb.New(time.Duration(bound))})
	}
	return list
}
