package migration

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
)

// Moves takes in what the controllers say about moves from and to this host. It remembers that on disk: the moves
// complete without a controller.
func (mv *Part) Moves(ctx context.Context, m *controllerv1.HostMoves) error {
	return mv.host.Loop.Do(ctx, func() error {
		ordered := map[string]bool{}
		for _, o := range m.GetOrders() {
			ordered[o.GetMove()] = true
			mv.ordered(o)
		}
		for _, t := range mv.records.all() {
			for _, a := range append(slices.Clone(t.Aside), t.Away) {
				if a != nil && !a.Over() && !ordered[a.Move] {
					a.Withdrawn()
				}
			}
		}
		for _, e := range m.GetExpected() {
			mv.expect(e)
		}
		mv.Look()
		mv.follow()
		return mv.host.Save()
	})
}

// ordered takes in an order. One that comes before it is known where the guest runs is kept. A controller that has not
// heard that an earlier move is over does not put it in the place of the one that is under way.
func (mv *Part) ordered(o *controllerv1.MoveOrder) {
	t := mv.records.get(keyOf(strings.ToLower(o.GetVm()), o.GetAdapter()))
	if t == nil || o.GetMove() == "" || o.GetHost() == "" || t.Ended(o.GetMove()) {
		return
	}
	s := sight{guest: moves.GuestGone}
	if a, is := mv.host.AdapterOf(t.Port.Name); is && a.key() == keyOf(t.VM, t.Adapter) {
		s = mv.see(t.Port)
	}
	before, was := marked(t), t.Away
	if aside := t.SetAside(o.GetMove()); aside != nil && !was.Over() {
		was = aside
	}
	next, _ := moves.Ordered(was, moves.Order{Move: o.GetMove(), Host: o.GetHost(), HostName: o.GetHostName(),
		Addresses: o.GetAddresses()}, s.guest, time.Now())
	t.Ordered(next)
	mv.tell(t, before)
}

// Leaving is called while a connected port is about to be removed, for its last copy.
func (mv *Part) Leaving(id plan.PortID) {
	t := mv.travelOf(id.Name)
	if t == nil || t.Port != id || t.Away == nil || t.Away.Over() {
		return
	}
	if f := mv.transfers[keyOf(t.VM, t.Adapter)]; f != nil {
		f.leaves(id, !t.Away.Silent)
	}
	if t.Away.Silent {
		return
	}
	if goods := mv.packs(t); goods != nil {
		mv.packed[id] = goods
	}
}

// packs reads what a port has now, encoded; nil where it can't be read.
func (mv *Part) packs(t *state.Travel) []byte {
	if goods := mv.packed[t.Port]; goods != nil {
		return goods
	}
	b, err := mv.bundle(t)
	if err != nil {
		mv.host.Complain("read what a port has that leaves this host", err)
		return nil
	}
	goods, err := proto.Marshal(b)
	if err != nil {
		mv.host.Complain("read what a port has that leaves this host", err)
		return nil
	}
	return append([]byte{}, goods...) // never nil
}

func (mv *Part) bundle(t *state.Travel) (*hostv1.PortBundle, error) {
	if mv.baggage == nil {
		return &hostv1.PortBundle{Version: 1}, nil
	}
	var read portstate.Read
	if f := mv.transfers[keyOf(t.VM, t.Adapter)]; f != nil {
		read = f.read()
	}
	return mv.baggage.Pack(t.Port, read)
}

// sends has copies given for all moves from this host.
func (mv *Part) sends() {
	for _, t := range mv.records.all() {
		key := keyOf(t.VM, t.Adapter)
		f, wanted := mv.transfers[key], mv.caller != nil && t.Away != nil && !t.Away.Over()
		switch {
		case wanted && f == nil:
			mv.transfers[key] = begin(mv, mv.host, mv.baggage, mv.caller, key)
		case wanted:
			f.now(t.Away)
		case f != nil:
			f.cancel()
			delete(mv.transfers, key)
		}
	}
}

// movedBy returns the record of the move whose copies a transfer gives; nil where that is over.
func (mv *Part) movedBy(key string, f *transfer) *state.Travel {
	t := mv.records.get(key)
	if t == nil || t.Away == nil || mv.transfers[key] != f {
		return nil
	}
	return t
}

// answered takes in what the target has answered to a message, or why it has not. An answer about a move that is
// not the adapter's any more is left out.
func (mv *Part) answered(key string, m *parcel, a *hostv1.CopyPortResponse, failed error) {
	t := mv.records.get(key)
	if t == nil || t.Away == nil || t.Away.Move != m.to.GetMove() {
		return
	}
	before, was, changed, now := marked(t), *t.Away, false, time.Now()
	if failed != nil {
		changed = t.Away.Unanswered(failed.Error(), now)
	} else {
		changed = t.Away.Answered(m.send, answerOf(a), now)
	}
	mv.tell(t, before)
	another := (failed != nil || t.Away.Over()) && t.Returns(was, now)
	if another {
		mv.Look() // at the guest, for the move that goes on
	}
	if changed || another {
		mv.follow()
	}
	if another || m.send.Urgent || before.steps[1] != t.Away.Phase {
		if err := mv.host.Save(); err != nil {
			mv.host.Complain("remember how far a move is", err)
		}
	}
}

func answerOf(a *hostv1.CopyPortResponse) moves.Answer {
	out := moves.Answer{Confirmed: a.GetConfirmed(), Phase: moves.Prepared, Generation: a.GetGeneration()}
	switch a.GetPhase() {
	case hostv1.TargetPhase_TARGET_PHASE_ACTIVE:
		out.Phase = moves.Active
	case hostv1.TargetPhase_TARGET_PHASE_GONE:
		out.Phase = moves.Cancelled
	}
	return out
}
