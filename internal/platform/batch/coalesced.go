package batch

import (
	"context"
	"sync"
)

// Call is one call for all who ask while one before is under way: strangers can make a controller write to etcd no
// faster than one write after the other.
type Call struct {
	mu   sync.Mutex
	next *shared // not begun yet
	busy bool
}

type shared struct {
	done chan struct{}
	err  error
}

// Do returns when do has been called once, begun after this call.
func (c *Call) Do(ctx context.Context, do func(context.Context) error) error {
	c.mu.Lock()
	if c.next == nil {
		c.next = &shared{done: make(chan struct{})}
	}
	mine := c.next
	if !c.busy {
		c.busy = true
		go c.run(do)
	}
	c.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run calls until nobody asks any more.
func (c *Call) run(do func(context.Context) error) {
	for {
		c.mu.Lock()
		mine := c.next
		c.next = nil
		if c.busy = mine != nil; !c.busy {
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		mine.err = do(context.Background()) // bounded by the store
		close(mine.done)
	}
}
