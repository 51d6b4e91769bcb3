package access

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/rounds"
)

// Turns has what costs much done for one caller at a time: one caller after the other has a turn, and of a caller what
// came first. However much one of them asks at once, another one waits for one turn of each caller at most. Who manages
// the cluster has turns of their own, which nobody else takes. The zero value is ready.
type Turns struct {
	mu             sync.Mutex
	others, admins lane
}

// lane is a row of callers of whom one has the turn.
type lane struct {
	taken   bool
	waiting rounds.Of[string, *turn]
}

// turn is what waits; begins gets one value when it has its turn.
type turn struct{ begins chan struct{} }

// Take waits for the caller's turn, which ends with leave. The error says that the call ended before it came.
func (t *Turns) Take(ctx context.Context) (leave func(), err error) {
	c, asked := Of(ctx)
	l := &t.others
	if !asked || c.manages() { // the controller's own calls as well
		l = &t.admins
	}
	w, waiting := t.enter(l, c.key())
	if w == nil {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("one question of this kind is "+
			"answered at a time, and %d of yours wait for their turn: ask fewer at once", waiting))
	}
	select {
	case <-w.begins:
		return sync.OnceFunc(func() { t.leave(l) }), nil
	case <-ctx.Done():
	}
	if !t.remove(l, c.key(), w) { // it had its turn at the same instant
		t.leave(l)
	}
	code := connect.CodeCanceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	return nil, connect.NewError(code, fmt.Sprintf("one question of this kind is answered at a "+
		"time, and yours had not had its turn: ask fewer at once (%v)", ctx.Err()))
}

// mostWaiting is how much waits of one caller: what waits has one of the controller's places for calls.
const mostWaiting = 16

// enter gives a turn that begins at once or later; nil where so much waits of the caller that no more may.
func (t *Turns) enter(l *lane, caller string) (w *turn, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w = &turn{make(chan struct{}, 1)}
	if !l.taken {
		l.taken = true
		w.begins <- struct{}{}
		return w, 0
	}
	if waiting = l.waiting.Count(caller); waiting >= mostWaiting {
		return nil, waiting
	}
	l.waiting.Add(caller, w)
	return w, waiting
}

// leave gives the turn to the next one.
func (t *Turns) leave(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next, ok := l.waiting.Next(); ok {
		next.begins <- struct{}{}
		return
	}
	l.taken = false
}

// remove takes out what waits no more; false where it has its turn.
func (t *Turns) remove(l *lane, caller string, w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, there := l.waiting.Remove(caller, func(one *turn) bool { return one == w })
	return there
}

// Waiting is how many wait.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.others.waiting.Len() + t.admins.waiting.Len()
}
