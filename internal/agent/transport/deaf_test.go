package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// deafListener accepts connections to whose peers nothing can be written any more, once they are deaf.
type deafListener struct {
	net.Listener
	deaf atomic.Bool
}

// deafConn is one of them. What is written waits, whatever the deadline, until the connection is closed.
type deafConn struct {
	net.Conn
	of     *deafListener
	closed chan struct{}
	once   sync.Once
}

func (l *deafListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &deafConn{Conn: c, of: l, closed: make(chan struct{})}, nil
}

func (c *deafConn) Write(b []byte) (int, error) {
	if !c.of.deaf.Load() {
		return c.Conn.Write(b)
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A door closes at once, though hosts that have proved who they are read nothing: TLS would wait to say goodbye to each
// of them, and the agent's loop with it.
func TestS104_ADoorWaitsForNoHostThatDoesNotRead(t *testing.T) {
	c := newCluster(t)
	g := c.target("target")
	g.takes("source")
	g.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deaf := &deafListener{Listener: l}
	g.mu.Lock()
	g.serve(deaf)
	g.mu.Unlock()
	g.at = []string{l.Addr().String()}
	for range 3 {
		if _, err := c.caller(c.host("source")).Call(t.Context(), g.order("target"), copyOf(1)); err != nil {
			t.Fatal(err)
		}
	}
	deaf.deaf.Store(true)
	closed := make(chan struct{})
	go func() { g.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("the door waits for those who do not read")
	}
}
