package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of calls that are passed on to hosts.
const (
	// mostCallsOfHost is how many one host answers at a time.
	mostCallsOfHost = 64
	// mostCalls is how many there are at a time.
	mostCalls = 8192
	// window is how much of an answer may be here without having been read, in bytes.
	window = 128 << 10
)

// calls are those that are passed on in one conversation with a host. The zero value is ready.
type calls struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*call
	out  []*controllerv1.HostCall // to be sent, the oldest first
	over error                    // why the conversation has ended; nil while it has not
}

// call is one that a host answers.
type call struct {
	of   *calls
	conn *conn
	id   uint64

	mu      sync.Mutex
	parts   []*controllerv1.HostAnswer // that were not read yet
	granted int                        // how many bytes may come still
	read    int                        // how many were read since more were granted
	err     error                      // why nothing comes any more
	changed chan struct{}              // holds one token when there is something to read
	// silent asks whether the host is there, where it says nothing.
	silent *time.Timer
}

// call begins a call to a host.
func (c *conn) call(begin *controllerv1.HostCallBegin) (*call, error) {
	k := &c.calls
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.over != nil:
		return nil, k.over
	case len(k.open) >= mostCallsOfHost:
		return nil, connect.NewError(connect.CodeResourceExhausted,
			"too many people look at this host at the same time: ask again later")
	}
	if k.open == nil {
		k.open = map[uint64]*call{}
	}
	k.last++
	q := &call{of: k, conn: c, id: k.last, granted: window, changed: make(chan struct{}, 1)}
	k.open[q.id] = q
	k.out = append(k.out, &controllerv1.HostCall{Id: q.id, Begin: begin, Window: window})
	c.poke()
	return q, nil
}

// next is what is to be sent next; nil for nothing.
func (k *calls) next() *controllerv1.HostCall {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.out) == 0 {
		return nil
	}
	m := k.out[0]
	k.out[0] = nil
	k.out = k.out[1:]
	return m
}

// answered takes in a part of an answer. It does not block, whether somebody reads or not.
func (k *calls) answered(a *controllerv1.HostAnswer) {
	k.mu.Lock()
	q := k.open[a.GetCall()]
	if q != nil && a.GetEnd() {
		delete(k.open, q.id)
	}
	k.mu.Unlock()
	if q != nil {
		q.take(a)
	}
}

// end ends all calls, as the conversation has ended.
func (k *calls) end(why error) {
	k.mu.Lock()
	k.over = why
	open := k.open
	k.open, k.out = nil, nil
	k.mu.Unlock()
	for _, q := range open {
		q.fail(why)
	}
}

// take takes in a part.
func (q *call) take(a *controllerv1.HostAnswer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heard()
	if q.err != nil {
		return
	}
	if q.granted -= len(a.GetData()); q.granted < 0 {
		q.err = connect.NewError(connect.CodeInternal, "the host sent more than it may")
		q.of.cancel(q)
	} else {
		q.parts = append(q.parts, a)
	}
	q.wake()
}

func (q *call) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *call) fail(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = why
	}
	q.wake()
}

// errBroken begins what is said of an answer that the host did not complete.
var errBroken = errors.New("the host did not complete its answer")

// receive is the next part of the answer. Whoever reads lets the host send more.
func (q *call) receive(ctx context.Context) (*controllerv1.HostAnswer, error) {
	for {
		a, err := q.first()
		if a != nil || err != nil {
			return a, err
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// first is the first part that has not been read; nil for none.
func (q *call) first() (*controllerv1.HostAnswer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.parts) == 0 {
		return nil, q.err
	}
	a := q.parts[0]
	q.parts = q.parts[1:]
	q.read += len(a.GetData())
	if q.read >= window/2 && q.err == nil {
		q.of.grant(q, q.read)
		q.granted += q.read
		q.read = 0
	}
	return a, nil
}

// grant lets the host send so many bytes more.
func (k *calls) grant(q *call, n int) { k.send(q, &controllerv1.HostCall{Id: q.id, Window: uint32(n)}) }

// cancel says that nobody waits for the answer any more.
func (k *calls) cancel(q *call) { k.send(q, &controllerv1.HostCall{Id: q.id, Cancel: true}) }

// send sends a part of a call that has not ended.
func (k *calls) send(q *call, m *controllerv1.HostCall) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[q.id] != q {
		return
	}
	k.out = append(k.out, m)
	q.conn.poke()
}

// close ends a call, however far it came.
func (q *call) close() {
	q.heard()
	q.of.cancel(q)
	q.fail(context.Canceled)
}
