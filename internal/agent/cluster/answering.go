package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of the calls that come by way of a controller.
const (
	// mostCalls is how many are answered at a time.
	mostCalls = 64
	// piece is how much of an answer is sent at once, in bytes: what is more urgent passes in between.
	piece = 32 << 10
	// mostWindow is how much a controller may have on its way, in bytes, whatever it says.
	mostWindow = 1 << 20
)

// calls are the calls of one conversation, made by others by way of the controller.
type calls struct {
	handler http.Handler
	log     *slog.Logger
	ctx     context.Context
	send    func(*controllerv1.HostAnswer) error

	mu      sync.Mutex
	open    map[uint64]*answering
	running sync.WaitGroup
}

// take takes in a part of a call.
func (k *calls) take(m *controllerv1.HostCall) error {
	k.mu.Lock()
	a := k.open[m.GetId()]
	k.mu.Unlock()
	switch q := m.GetBegin(); {
	case a != nil && m.GetCancel():
		a.cancel()
	case a != nil:
		a.more(int(m.GetWindow()))
	case q != nil:
		return k.begin(m.GetId(), int(m.GetWindow()), q)
	}
	return nil // of one that has ended
}

// begin begins to answer a call.
func (k *calls) begin(id uint64, window int, q *controllerv1.HostCallBegin) error {
	refuse := func(why string) error {
		return k.send(&controllerv1.HostAnswer{Call: id, End: true, Broken: why})
	}
	if k.handler == nil {
		return refuse("this host answers no calls that come by way of a controller")
	}
	ctx, cancel := context.WithCancel(k.ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+q.GetProcedure(),
		bytes.NewReader(q.GetBody()))
	if err != nil {
		cancel()
		return refuse(fmt.Sprintf("the call cannot be read: %v", err))
	}
	for name, value := range q.GetHeaders() {
		r.Header.Set(name, value)
	}
	a := &answering{calls: k, id: id, ctx: ctx, cancel: cancel, header: http.Header{}, changed: make(chan struct{})}
	a.more(window)
	k.mu.Lock()
	full := len(k.open) >= mostCalls
	if !full {
		k.open[id] = a
	}
	k.mu.Unlock()
	if full {
		cancel()
		return refuse(fmt.Sprintf("the host answers %d calls already: ask again later", mostCalls))
	}
	k.running.Go(func() {
		defer cancel()
		a.serve(r)
		k.mu.Lock()
		delete(k.open, id)
		k.mu.Unlock()
	})
	return nil
}

// answering is the answer to one call: what its handler writes goes to the controller, as far as that takes it.
type answering struct {
	calls  *calls
	id     uint64
	ctx    context.Context
	cancel context.CancelFunc
	// Of the handler's goroutine.
	header http.Header
	status int
	begun  bool
	buffer []byte
	err    error

	mu       sync.Mutex
	window   int
	deadline time.Time
	changed  chan struct{} // closed and replaced when one of them is another
}

// serve answers, and says how that ended.
func (a *answering) serve(r *http.Request) {
	broken := ""
	func() {
		defer func() {
			if p := recover(); p != nil {
				broken = "the agent gave the answer up"
				if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
					a.calls.log.Error("answer a call", "procedure", r.URL.Path, "err", p, "stack",
						string(debug.Stack()))
				}
			}
		}()
		a.calls.handler.ServeHTTP(a, r)
	}()
	if broken == "" {
		if err := a.FlushError(); errors.Is(err, os.ErrDeadlineExceeded) {
			broken = "the answer was not read for too long"
		} else if err != nil {
			broken = "the answer was given up"
		}
	}
	// The conversation has ended where it cannot be sent.
	_ = a.calls.send(&controllerv1.HostAnswer{Call: a.id, End: true, Broken: broken})
}

// Header is the answer's.
func (a *answering) Header() http.Header { return a.header }

// WriteHeader says how the answer begins.
func (a *answering) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write gathers what is small.
func (a *answering) Write(b []byte) (int, error) {
	a.buffer = append(a.buffer, b...)
	if len(a.buffer) < piece {
		return len(b), a.err
	}
	return len(b), a.FlushError()
}

// FlushError sends what has gathered.
func (a *answering) FlushError() error {
	if a.err != nil {
		return a.err
	}
	if !a.begun {
		a.begun = true
		a.WriteHeader(http.StatusOK)
		begin := &controllerv1.HostAnswerBegin{Status: uint32(a.status), Headers: map[string]string{}}
		for name := range a.header {
			begin.Headers[name] = a.header.Get(name)
		}
		a.err = a.calls.send(&controllerv1.HostAnswer{Call: a.id, Begin: begin})
	}
	for a.err == nil && len(a.buffer) > 0 {
		n, err := a.wait(min(piece, len(a.buffer)))
		if err == nil {
			err = a.calls.send(&controllerv1.HostAnswer{Call: a.id, Data: bytes.Clone(a.buffer[:n])})
		}
		a.buffer, a.err = a.buffer[n:], err
	}
	if len(a.buffer) == 0 {
		a.buffer = a.buffer[:0:0]
	}
	return a.err
}

// Flush is FlushError; what failed is found by the next write.
func (a *answering) Flush() { _ = a.FlushError() }

// wait waits until something may be sent, and says how much.
func (a *answering) wait(most int) (int, error) {
	for {
		a.mu.Lock()
		n, deadline, changed := min(most, a.window), a.deadline, a.changed
		a.window -= n
		a.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if err := until(a.ctx, changed, deadline); err != nil {
			return 0, err
		}
	}
}

// until waits for a change; a deadline that is zero is never.
func until(ctx context.Context, changed <-chan struct{}, deadline time.Time) error {
	var over <-chan time.Time
	if !deadline.IsZero() {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		over = t.C
	}
	select {
	case <-changed:
		return nil
	case <-over:
		return os.ErrDeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// more lets the answer go on by so many bytes.
func (a *answering) more(n int) {
	a.change(func() { a.window = min(mostWindow, a.window+n) })
}

// SetWriteDeadline bounds how long what is written may wait for the reader.
func (a *answering) SetWriteDeadline(t time.Time) error {
	a.change(func() { a.deadline = t })
	return nil
}

// SetReadDeadline bounds nothing: the request is all there.
func (a *answering) SetReadDeadline(time.Time) error { return nil }

func (a *answering) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}
