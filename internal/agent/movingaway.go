package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/state"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Times of the source. No port depends on them.
const (
	// copyEvery is how often a copy is made while the guest runs.
	copyEvery = time.Second
	// firstRetry and longRetry are the pauses after a call that failed.
	firstRetry = 50 * time.Millisecond
	longRetry  = time.Second
	// callTime bounds one call.
	callTime = 10 * time.Second
)

// Moves takes in what the controllers say about moves from and to this host. It remembers that on disk: the moves
// complete without a controller.
func (mv *moving) Moves(ctx context.Context, m *controllerv1.HostMoves) error {
	return mv.Do(ctx, func() error {
		ordered := map[string]bool{}
		for _, o := range m.GetOrders() {
			ordered[o.GetMove()] = true
			mv.ordered(o)
		}
		for _, t := range mv.state.Travels {
			for _, a := range append(slices.Clone(t.Aside), t.Away) {
				if a != nil && !a.Over() && !ordered[a.Move] {
					a.Withdrawn()
				}
			}
		}
		for _, e := range m.GetExpected() {
			mv.expect(e)
		}
		mv.look()
		mv.follow()
		return mv.ports.save()
	})
}

// ordered takes in an order. One that comes before it is known where the guest runs is kept. A controller that has not
// heard that an earlier move is over does not put it in the place of the one that is under way.
func (mv *moving) ordered(o *controllerv1.MoveOrder) {
	t := mv.known[keyOf(strings.ToLower(o.GetVm()), o.GetAdapter())]
	if t == nil || o.GetMove() == "" || o.GetHost() == "" || t.Ended(o.GetMove()) {
		return
	}
	s := sight{guest: moves.GuestGone}
	if n := mv.state.NICOf(t.Port.Name); n != nil && n.VM == t.VM && n.Adapter == t.Adapter {
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

// leaving is called while a port is about to be removed, for its last copy.
func (mv *moving) leaving(id plan.PortID) {
	t := mv.travelOf(id.Name)
	if t == nil || t.Port != id || t.Away == nil || t.Away.Over() {
		return
	}
	f := mv.ferries[keyOf(t.VM, t.Adapter)]
	if f != nil {
		f.gone = true
	}
	if t.Away.Silent {
		return
	}
	if f != nil {
		f.hearsNow(id)
	}
	if goods := mv.packs(t); goods != nil {
		mv.packed[id] = goods
	}
}

// packs reads what a port has now, encoded; nil where it can't be read.
func (mv *moving) packs(t *state.Travel) []byte {
	if goods := mv.packed[t.Port]; goods != nil {
		return goods
	}
	b, err := mv.bundle(t)
	if err != nil {
		mv.Complain("read what a port has that leaves this host", err)
		return nil
	}
	goods, err := proto.Marshal(b)
	if err != nil {
		mv.Complain("read what a port has that leaves this host", err)
		return nil
	}
	return append([]byte{}, goods...) // never nil
}

func (mv *moving) bundle(t *state.Travel) (*hostv1.PortBundle, error) {
	if mv.goods == nil {
		return &hostv1.PortBundle{Version: 1}, nil
	}
	var macs []observe.MACEntry
	if f := mv.ferries[keyOf(t.VM, t.Adapter)]; f != nil {
		macs = f.heard.now()
	}
	return mv.goods.pack(t.Port, macs)
}

// ferrying gives the copies of one port to its target, beside the loop.
type ferrying struct {
	*moving
	key  string
	done chan struct{}
	kick chan struct{} // holds one token when there may be something to say at once
	ctx  context.Context
	stop context.CancelFunc
	// The rest belongs to the loop. hurry ends the call that is under way where it is not urgent; nil without such a
	// call. heard are the port's learned MACs as they were read last, nil for never. gone: the port has been about to
	// be removed since the reading began that is under way, so that its table may be another port's.
	hurry context.CancelFunc
	heard *heard
	gone  bool
}

// sends has copies given for all moves from this host.
func (mv *moving) sends() {
	for key, t := range mv.known {
		f, wanted := mv.ferries[key], mv.caller != nil && t.Away != nil && !t.Away.Over()
		switch {
		case wanted && f == nil:
			ctx, stop := context.WithCancel(context.Background())
			f = &ferrying{moving: mv, key: key, kick: make(chan struct{}, 1), ctx: ctx, stop: stop,
				done: make(chan struct{})}
			mv.ferries[key] = f
			go f.run()
		case wanted:
			f.now(t.Away)
		case f != nil:
			f.stop()
			delete(mv.ferries, key)
		}
	}
}

// now has the next message sent at once if it is urgent.
func (f *ferrying) now(a *moves.Away) {
	if !a.Tells && (!a.Silent || a.Last) {
		return
	}
	if f.hurry != nil {
		f.hurry()
	}
	f.again()
}

// again has the next message sent at once.
func (f *ferrying) again() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// run sends message after message until the move is over.
func (f *ferrying) run() {
	defer close(f.done)
	defer f.stop()
	retry := firstRetry
	for f.ctx.Err() == nil {
		pause := copyEvery
		m, err := f.next(f.hears())
		switch {
		case err != nil:
			return // the agent ends
		case m != nil && !f.call(m):
			pause, retry = retry, min(2*retry, longRetry)
		default:
			retry = firstRetry
		}
		select {
		case <-f.ctx.Done():
		case <-f.kick:
		case <-time.After(pause):
		case <-f.Stopped():
			return
		}
	}
}

// parcel is a message with all that the call needs.
type parcel struct {
	send moves.Send
	to   *controllerv1.MoveOrder
	copy *hostv1.CopyPortRequest
	ctx  context.Context
	end  context.CancelFunc
}

// next makes the next message; nil where nothing is to be said now. fresh are the port's MACs as they were just read,
// nil where they were not.
func (f *ferrying) next(fresh *heard) (m *parcel, err error) {
	return m, f.Do(f.ctx, func() error {
		t := f.known[f.key]
		if t == nil || t.Away == nil || f.ferries[f.key] != f {
			return nil
		}
		a := t.Away
		f.renews(t, fresh)
		send, reserved, ok := a.Next(t.Generation)
		if !ok {
			return nil
		}
		if reserved {
			if err := f.ports.save(); err != nil {
				f.Complain("remember the copies of a port that leaves this host", err)
				return nil
			}
		}
		b, err := f.bundleFor(t, send)
		if err != nil {
			f.Complain("read what a port has that leaves this host", err)
			return nil
		}
		m = &parcel{send: send, to: &controllerv1.MoveOrder{Move: a.Move, Vm: t.VM, Adapter: t.Adapter, Host: a.Host,
			HostName: a.HostName, Addresses: a.Addresses}, copy: &hostv1.CopyPortRequest{Move: a.Move,
			Number: send.Number, Phase: sourcePhase(send.Says), Generation: send.Generation, Bundle: b}}
		m.ctx, m.end = context.WithTimeout(f.ctx, callTime)
		if f.hurry = nil; !send.Urgent {
			f.hurry = m.end
		}
		return nil
	})
}

// bundleFor is what a message carries.
func (f *ferrying) bundleFor(t *state.Travel, s moves.Send) (*hostv1.PortBundle, error) {
	switch {
	case s.Asks || s.Says == moves.Resumes:
		return nil, nil
	case t.Away.Goods != nil:
		b := &hostv1.PortBundle{}
		return b, proto.Unmarshal(t.Away.Goods, b)
	}
	return f.bundle(t)
}

func sourcePhase(s moves.Says) hostv1.SourcePhase {
	switch s {
	case moves.Stops:
		return hostv1.SourcePhase_SOURCE_PHASE_STOPPED
	case moves.Resumes:
		return hostv1.SourcePhase_SOURCE_PHASE_RESUMED
	}
	return hostv1.SourcePhase_SOURCE_PHASE_RUNNING
}

// call sends a message and takes in the answer. It reports whether the target answered.
func (f *ferrying) call(m *parcel) (answered bool) {
	a, err := f.caller.Call(m.ctx, m.to, m.copy)
	m.end()
	if connect.CodeOf(err) == connect.CodeNotFound {
		a, err = &hostv1.CopyPortResponse{Phase: hostv1.TargetPhase_TARGET_PHASE_GONE}, nil
	}
	ended := f.Do(f.ctx, func() error {
		f.hurry = nil
		t := f.known[f.key]
		if t == nil || t.Away == nil || t.Away.Move != m.to.GetMove() {
			return nil
		}
		before, was, changed, now := marked(t), *t.Away, false, time.Now()
		if err != nil {
			changed = t.Away.Unanswered(err.Error(), now)
		} else {
			changed = t.Away.Answered(m.send, answerOf(a), now)
		}
		f.tell(t, before)
		another := (err != nil || t.Away.Over()) && t.Returns(was, now)
		if another {
			f.look() // at the guest, for the move that goes on
		}
		if changed || another {
			f.follow()
		}
		if another || m.send.Urgent || before.steps[1] != t.Away.Phase {
			if err := f.ports.save(); err != nil {
				f.Complain("remember how far a move is", err)
			}
		}
		return nil
	})
	return err == nil && ended == nil
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
