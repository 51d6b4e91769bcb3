package idle

import (
	"io"
	"sync"
	"time"
)

// Place keeps one thing that nobody uses. Its methods may be called from any goroutine.
type Place[T io.Closer] struct {
	after time.Duration

	mu     sync.Mutex
	thing  *T
	since  int // counts what was put, for the timer
	closed bool
}

// NewPlace makes a place that keeps a thing for so long.
func NewPlace[T io.Closer](after time.Duration) *Place[T] { return &Place[T]{after: after} }

// Take gives what is kept; ok is false for nothing.
func (p *Place[T]) Take() (thing T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thing == nil {
		return thing, false
	}
	thing, p.thing = *p.thing, nil
	return thing, true
}

// Put keeps a thing, or closes it where one is kept already.
func (p *Place[T]) Put(thing T) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.thing != nil {
		return thing.Close()
	}
	p.thing = &thing
	p.since++
	since := p.since
	time.AfterFunc(p.after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.since == since {
			_ = p.drop() // what is not freed now is freed when the process ends
		}
	})
	return nil
}

// Close closes what is kept, and from now on what is put.
func (p *Place[T]) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.drop()
}

func (p *Place[T]) drop() error {
	if p.thing == nil {
		return nil
	}
	thing := *p.thing
	p.thing = nil
	return thing.Close()
}
