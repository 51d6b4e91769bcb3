package loop

import (
	"context"
	"errors"
	"sync"
)

// Loop hands functions to the goroutine that runs them one after another.
type Loop struct {
	calls   chan func()
	stopped chan struct{} // closed when the loop has ended
	end     sync.Once
}

// New returns a loop. Somebody has to run what comes by Calls.
func New() *Loop { return &Loop{calls: make(chan func()), stopped: make(chan struct{})} }

// Calls has the functions that are to be run.
func (l *Loop) Calls() <-chan func() { return l.calls }

// End says that nothing is run any more.
func (l *Loop) End() { l.end.Do(func() { close(l.stopped) }) }

// Stopped is closed when the loop has ended.
func (l *Loop) Stopped() <-chan struct{} { return l.stopped }

// Ends reports whether the loop has ended.
func (l *Loop) Ends() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return false
	}
}

// Do runs f in the loop and waits for it.
func (l *Loop) Do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case l.calls <- func() { done <- f() }:
		return <-done
	case <-l.stopped:
		return errors.New("the agent is stopping")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Post runs f in the loop, from any goroutine but the loop's own; false if the loop has ended.
func (l *Loop) Post(f func()) bool {
	select {
	case l.calls <- f:
		return true
	case <-l.stopped:
		return false
	}
}

// PostUnless runs f in the loop unless done is closed first.
func (l *Loop) PostUnless(done <-chan struct{}, f func()) {
	select {
	case l.calls <- f:
	case <-l.stopped:
	case <-done:
	}
}

// InLoop runs f in the loop. After the loop has ended it does nothing: closing the kernel's objects has the same effect
// as f.
func (l *Loop) InLoop(f func() error) error {
	err := l.Do(context.Background(), f)
	if l.Ends() {
		return nil
	}
	return err
}
