package rpc

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
)

// pongTime is how long a host's older connection may take to answer, when a newer one comes.
const pongTime = 2 * time.Second

// ask is a ping that a host has to answer.
type ask struct {
	number uint64
	sent   bool
	pong   chan struct{} // closed by the answer; nil where nothing is asked
}

// makeRoom makes room for a newer connection of a host. Where the older one is of another machine that answers, two
// machines have one certificate: the one that is there stays, and the newer one is refused.
func (f *fleet) makeRoom(id string, c *conn) error {
	f.mu.Lock()
	h := f.hosts[id]
	if h == nil || h.conn == nil || h.conn.start == c.start {
		f.mu.Unlock()
		return nil
	}
	old, name := h.conn, h.doc.Name
	f.mu.Unlock()
	if !f.answers(context.Background(), old) {
		return nil
	}
	return f.twice(name, old.address, c.address)
}

// answers asks a host, by a connection, whether it is there.
func (f *fleet) answers(ctx context.Context, c *conn) bool {
	f.mu.Lock()
	if c.ask.pong == nil {
		c.ask = ask{number: c.ask.number + 1, pong: make(chan struct{})}
	}
	pong := c.ask.pong
	c.poke()
	f.mu.Unlock()
	select {
	case <-pong:
		return true
	case <-c.done:
	case <-ctx.Done():
	case <-time.After(pongTime):
	}
	return false
}

// twice is the error for a second machine with the certificate of a host.
func (f *fleet) twice(name, there, here string) error {
	why := fmt.Sprintf("two machines have the certificate of host %s: the one at %s is connected and answers, so the "+
		"one at %s is refused; if it is a copy, take it out of the cluster there (heddle host leave) and join under "+
		"a name of its own (heddle host join)", name, there, here)
	f.log.Warn("a host is refused", "host", name, "why", why)
	return connect.NewError(connect.CodeAlreadyExists, why)
}

// ping is the number of the ping that is to be sent; 0 for none.
func (f *fleet) ping(c *conn) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.ask.pong == nil || c.ask.sent {
		return 0
	}
	c.ask.sent = true
	return c.ask.number
}

// answered takes in a pong. The caller holds the lock.
func (c *conn) answered(number uint64) {
	if c.ask.pong != nil && number == c.ask.number {
		close(c.ask.pong)
		c.ask.pong = nil
	}
}
