package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fault"
	"heddle/internal/controller/store"
)

// mostCancelled is how many moves wait to be cancelled at a host that is away: the oldest are given up.
const mostCancelled = 64

// cancelledMove is a move to a host that was away when it was cancelled. It is in the host's own record, so that
// whichever controller the host comes back to has it.
type cancelledMove struct {
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	// Move is its id; "" where that was not known.
	Move string    `json:"move,omitempty"`
	At   time.Time `json:"at"`
}

func (c cancelledMove) nic() nic { return nic{c.VM, c.Adapter} }

// cancelLater notes that a move is cancelled when its target is back.
func (a acts) cancelLater(ctx context.Context, m *moving) error {
	c := cancelledMove{VM: m.nic.vm, Adapter: m.nic.adapter, At: time.Now().UTC()}
	a.fleet.mu.Lock()
	if h := a.fleet.hosts[m.toID]; h != nil {
		if o := h.offerOf(m.nic); o != nil {
			c.Move = o.GetMove()
		}
	}
	a.fleet.mu.Unlock()
	err := a.editCancelled(ctx, m.to, m.toID, func(list []cancelledMove) []cancelledMove {
		list = append(without(list, m.nic), c)
		return list[max(0, len(list)-mostCancelled):]
	})
	if err == nil {
		a.Log.Info("a move is cancelled when its target is back", "host", m.to, "port", m.name, "vm", m.nic.vm)
	}
	return err
}

// without are those of other adapters.
func without(list []cancelledMove, n nic) []cancelledMove {
	return slices.DeleteFunc(list, func(c cancelledMove) bool { return c.nic() == n })
}

// offerOf is what the host offers of an adapter; nil for nothing. The caller holds the lock.
func (h *host) offerOf(n nic) *controllerv1.MoveOffer {
	for _, o := range h.offers {
		if (nic{o.GetVm(), o.GetAdapter()}) == n {
			return o
		}
	}
	return nil
}

// Times of an edit of a host's record that another one gets ahead of.
const (
	editTries = 5
	editPause = 50 * time.Millisecond
)

// editCancelled changes which moves are to be cancelled at a host. Nothing is written where they are the same.
func (s *Server) editCancelled(ctx context.Context, name, id string,
	edit func([]cancelledMove) []cancelledMove) (err error) {
	for range editTries {
		var conflict *store.Conflict
		if err = s.editCancelledOnce(ctx, name, id, edit); !errors.As(err, &conflict) {
			break
		}
		select {
		case <-time.After(editPause): // until what was written is here
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fault.OfStore(err)
}

func (s *Server) editCancelledOnce(ctx context.Context, name, id string,
	edit func([]cancelledMove) []cancelledMove) error {
	o, ok := s.Store.Get(store.Key{Kind: store.KindHost, Name: name})
	if !ok || o.ID != id {
		return fault.Removed()
	}
	var doc hostDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		return err
	}
	next := edit(slices.Clone(doc.Cancelled))
	if slices.Equal(next, doc.Cancelled) {
		return nil
	}
	doc.Cancelled = next
	text, err := rewritten(o, doc)
	if err != nil {
		return err
	}
	_, err = s.Store.Write(ctx, []store.Change{{Key: o.Key, Doc: text, IfVersion: o.Version}})
	return err
}

// goesThere forgets that moves of an adapter to a host are to be cancelled: somebody sends it there anew.
func (a acts) goesThere(ctx context.Context, m *moving) error {
	a.fleet.mu.Lock()
	h := a.fleet.hosts[m.toID]
	known := h != nil && slices.ContainsFunc(h.doc.Cancelled, func(c cancelledMove) bool { return c.nic() == m.nic })
	a.fleet.mu.Unlock()
	if !known {
		return nil
	}
	return a.editCancelled(ctx, m.to, m.toID, func(list []cancelledMove) []cancelledMove {
		return without(list, m.nic)
	})
}

// cancelling cancels moves at a host that was away when somebody cancelled them.
type cancelling struct{ *Server }

// due begins to cancel, beside the conversation, what is to be cancelled at a host. It is called when the host has
// come, and when it has reported: what it has then waits since before, as no controller could send a VM there
// meanwhile.
func (s cancelling) due(ctx context.Context, h *host, c *conn) {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.conn != c || len(h.doc.Cancelled) == 0 || c.cancels || !c.answers {
		return
	}
	ports := map[nic]*controllerv1.HostPort{}
	for p := range h.report.all() {
		if p.GetWaits() {
			ports[nic{p.GetVm(), p.GetAdapter()}] = p
		}
	}
	c.cancels = true
	name, list := h.doc.Name, slices.Clone(h.doc.Cancelled)
	go func() { // ends with the conversation
		s.cancel(ctx, h.id, name, list, ports)
		f.mu.Lock()
		defer f.mu.Unlock()
		c.cancels = false
	}()
}

// cancel has a host cancel moves, and forgets those of which the host has said something: that the port is gone, or why
// it stays, as it is not waiting for a guest to arrive, or by another move.
func (s cancelling) cancel(ctx context.Context, id, name string, list []cancelledMove,
	ports map[nic]*controllerv1.HostPort) {
	over := map[cancelledMove]bool{}
	for _, m := range list {
		p := ports[m.nic()]
		if p == nil {
			over[m] = true
			continue
		}
		err := s.cancelAt(ctx, name, p.GetName(), &agentv1.PortIdentity{Host: id, Switch: p.GetSwitch(), Vm: m.VM,
			Adapter: m.Adapter, Move: m.Move})
		over[m] = err == nil || connect.CodeOf(err) == connect.CodeFailedPrecondition
		s.Log.Info("a move that was cancelled while its target was away", "host", name, "port", p.GetName(), "vm", m.VM,
			"cancelled", err == nil, "err", err)
	}
	err := s.editCancelled(ctx, name, id, func(now []cancelledMove) []cancelledMove {
		return slices.DeleteFunc(now, func(m cancelledMove) bool { return over[m] })
	})
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("a move that was cancelled stays noted, and is cancelled again", "host", name, "err", err)
	}
}
