package migration

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/state"
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

// transfer gives the copies of one port to its target, beside the loop.
type transfer struct {
	part    *Part
	host    Host
	baggage Baggage // nil where nothing travels
	caller  Caller

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

// begin begins to give the copies of the port of an adapter.
func begin(part *Part, h Host, b Baggage, c Caller, key string) *transfer {
	ctx, stop := context.WithCancel(context.Background())
	f := &transfer{part: part, host: h, baggage: b, caller: c, key: key, kick: make(chan struct{}, 1), ctx: ctx,
		stop: stop, done: make(chan struct{})}
	go f.run()
	return f
}

// cancel ends the transfer.
func (f *transfer) cancel() { f.stop() }

// end ends the transfer and waits for that.
func (f *transfer) end() {
	f.stop()
	<-f.done
}

// leaves takes in that the port is about to be removed. hears: its MACs are read at once if they never were.
func (f *transfer) leaves(id plan.PortID, hears bool) {
	if f.gone = true; hears {
		f.hearsNow(id)
	}
}

// now has the next message sent at once if it is urgent.
func (f *transfer) now(a *moves.Away) {
	if !a.Tells && (!a.Silent || a.Last) {
		return
	}
	if f.hurry != nil {
		f.hurry()
	}
	f.again()
}

// again has the next message sent at once.
func (f *transfer) again() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// run sends message after message until the move is over.
func (f *transfer) run() {
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
		case <-f.host.Loop.Stopped():
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
func (f *transfer) next(fresh *heard) (m *parcel, err error) {
	return m, f.host.Loop.Do(f.ctx, func() error {
		t := f.part.movedBy(f.key, f)
		if t == nil {
			return nil
		}
		a := t.Away
		f.renews(t, fresh)
		send, reserved, ok := a.Next(t.Generation)
		if !ok {
			return nil
		}
		if reserved {
			if err := f.host.Save(); err != nil {
				f.host.Complain("remember the copies of a port that leaves this host", err)
				return nil
			}
		}
		b, err := f.bundleFor(t, send)
		if err != nil {
			f.host.Complain("read what a port has that leaves this host", err)
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
func (f *transfer) bundleFor(t *state.Travel, s moves.Send) (*hostv1.PortBundle, error) {
	switch {
	case s.Asks || s.Says == moves.Resumes:
		return nil, nil
	case t.Away.Goods != nil:
		b := &hostv1.PortBundle{}
		return b, proto.Unmarshal(t.Away.Goods, b)
	}
	return f.part.bundle(t)
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
func (f *transfer) call(m *parcel) (answered bool) {
	a, err := f.caller.Call(m.ctx, m.to, m.copy)
	m.end()
	if connect.CodeOf(err) == connect.CodeNotFound {
		a, err = &hostv1.CopyPortResponse{Phase: hostv1.TargetPhase_TARGET_PHASE_GONE}, nil
	}
	ended := f.host.Loop.Do(f.ctx, func() error {
		f.hurry = nil
		f.part.answered(f.key, m, a, err)
		return nil
	})
	return err == nil && ended == nil
}
