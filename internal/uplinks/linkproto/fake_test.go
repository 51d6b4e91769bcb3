package linkproto

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heddle/internal/plan"
	"heddle/internal/uplinks/wire"
)

// network is devices in memory: frames sent on a device are kept, and a test can put frames in for it.
type network struct {
	mu      sync.Mutex
	devices map[uint32]*fakeSocket // open sockets
	broken  map[uint32]error       // devices on which opening a socket fails
	sent    []sentFrame
}

type sentFrame struct {
	ifindex uint32
	at      time.Time
	bytes   []byte
}

func newNetwork() *network {
	return &network{devices: map[uint32]*fakeSocket{}, broken: map[uint32]error{}}
}

type fakeSocket struct {
	n       *network
	ifindex uint32
	listen  atomic.Pointer[wire.Listen]
	in      chan *wire.Frame
	closed  chan struct{}
	failing chan error
	gone    atomic.Bool // its device is gone
}

func (n *network) open(ifindex uint32, listen wire.Listen) (Socket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.broken[ifindex]; err != nil {
		return nil, err
	}
	s := &fakeSocket{n: n, ifindex: ifindex, in: make(chan *wire.Frame), closed: make(chan struct{}),
		failing: make(chan error)}
	s.listen.Store(&listen)
	n.devices[ifindex] = s
	return s, nil
}

func (s *fakeSocket) Send(b []byte) error {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	s.n.sent = append(s.n.sent, sentFrame{s.ifindex, time.Now(), slices.Clone(b)})
	return nil
}

func (s *fakeSocket) Hear(listen wire.Listen) error {
	s.listen.Store(&listen)
	return nil
}

func (s *fakeSocket) Bound() bool { return !s.gone.Load() }

var errClosed = errors.New("closed")

func (s *fakeSocket) Receive() (*wire.Frame, error) {
	select {
	case f := <-s.in:
		return f, nil
	case err := <-s.failing:
		return nil, err
	case <-s.closed:
		return nil, errClosed
	}
}

func (s *fakeSocket) Close() error {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	if s.n.devices[s.ifindex] == s {
		delete(s.n.devices, s.ifindex)
	}
	close(s.closed)
	return nil
}

func (n *network) socket(ifindex uint32) *fakeSocket {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.devices[ifindex]
}

// put makes a frame arrive, with the EtherType and group of the device's socket; it waits until the frame is received.
func (n *network) put(ifindex uint32, source plan.MAC, payload []byte) {
	s := n.socket(ifindex)
	listen := s.listen.Load()
	s.arrive(&wire.Frame{Destination: listen.Groups[0], Source: source, EtherType: listen.EtherType, Payload: payload})
}

// arrive makes a frame arrive. It waits until the frame is received, unless the socket's filter drops it.
func (s *fakeSocket) arrive(f *wire.Frame) {
	if s.listen.Load().Takes(f) {
		s.in <- f
	}
}

// take returns what was sent on a device since the last call.
func (n *network) take(ifindex uint32) []sentFrame {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []sentFrame
	n.sent = slices.DeleteFunc(n.sent, func(f sentFrame) bool {
		if f.ifindex == ifindex {
			out = append(out, f)
		}
		return f.ifindex == ifindex
	})
	return out
}

// collected keeps reports.
type collected[R any] struct {
	mu  sync.Mutex
	all []R
}

func (c *collected[R]) take(r []R) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r...)
}

func (c *collected[R]) list() []R {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

var quiet = slog.New(slog.DiscardHandler)
