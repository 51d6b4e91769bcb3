package migration

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heddle/internal/lab/netns"
)

const (
	requestBytes = 64
	// askEvery is how often each connection of the crowd asks.
	askEvery = time.Second
	// answerTime is how long an answer may take before its connection counts as broken: many retransmissions.
	answerTime = 30 * time.Second
)

// crowd is many connections from outside to the guest that stay open over all moves, each with a request now and then.
type crowd struct {
	server  net.Listener
	ends    sync.WaitGroup
	stop    context.CancelFunc
	broken  atomic.Int64
	turn    sync.RWMutex // shared while a request is on its way
	dialled []net.Conn
}

// openCrowd opens the connections and begins to ask.
func openCrowd(ctx context.Context, server, client *netns.NS, connections int) (_ *crowd, err error) {
	c := &crowd{}
	ctx, c.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	err = server.Do(func() error {
		c.server, err = net.Listen("tcp4", guestIP+":0")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen for connections: %w", err)
	}
	c.ends.Go(c.serve)
	if err = c.dial(ctx, client, slices.Repeat([]string{c.server.Addr().String()},
		connections)); err != nil {
		return nil, err
	}
	return c, nil
}

// callCrowd opens a connection to each address, where a server answers every request with one of its length.
func callCrowd(ctx context.Context, client *netns.NS, to []string) (*crowd, error) {
	c := &crowd{}
	ctx, c.stop = context.WithCancel(ctx)
	if err := c.dial(ctx, client, to); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// dial opens a connection to each address and begins to ask.
func (c *crowd) dial(ctx context.Context, client *netns.NS, to []string) error {
	err := client.Do(func() error {
		for _, address := range to {
			d := net.Dialer{Timeout: readyTime}
			conn, err := d.DialContext(ctx, "tcp4", address)
			if err != nil {
				return fmt.Errorf("open %d connections: %w", len(to), err)
			}
			c.dialled = append(c.dialled, conn)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, conn := range c.dialled {
		c.ends.Go(func() { c.ask(ctx, conn, askEvery*time.Duration(i)/time.Duration(len(to))) })
	}
	return nil
}

// serve answers every request with itself.
func (c *crowd) serve() {
	for {
		conn, err := c.server.Accept()
		if err != nil {
			return
		}
		c.ends.Go(func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn) // its end is the client's, who counts
		})
	}
}

// ask asks on one connection until ctx ends. A connection without its answer is broken.
func (c *crowd) ask(ctx context.Context, conn net.Conn, first time.Duration) {
	defer conn.Close()
	if pause(ctx, first) != nil {
		return
	}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	buf := make([]byte, requestBytes)
	for ctx.Err() == nil {
		if err := c.exchange(conn, buf); err != nil {
			if ctx.Err() == nil {
				c.broken.Add(1)
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// exchange sends a request and waits for its answer.
func (c *crowd) exchange(conn net.Conn, buf []byte) error {
	c.turn.RLock()
	defer c.turn.RUnlock()
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	if _, err := conn.Write(buf); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, buf)
	return err
}

// rest waits until no request is on its way and lets none begin until again is called. It returns how many connections
// are broken by then: an answer that does not come within answerTime breaks its connection.
func (c *crowd) rest() (broken int64, again func()) {
	c.turn.Lock()
	return c.broken.Load(), c.turn.Unlock
}

// close ends all connections and waits for their ends.
func (c *crowd) close() {
	c.stop()
	for _, conn := range c.dialled {
		_ = conn.Close() // the asker may have closed it
	}
	if c.server != nil {
		_ = c.server.Close()
	}
	c.ends.Wait()
}
