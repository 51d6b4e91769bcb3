package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sinkBuffer    = 256 << 10
	receiveBuffer = 4 << 20 // bytes of packets a sink may lag behind
	// endPatience is how long a finishing sink waits for the end mark, or for a connection's last bytes.
	endPatience = 500 * time.Millisecond
	packetWake  = 10 * time.Millisecond
	// fullRateNap is the time of some dozens of packets at the highest rates, a hundredth of what fits into the
	// receive buffer.
	fullRateNap = 200 * time.Microsecond
)

// SinkOptions are the options of a sink.
type SinkOptions struct {
	Kind Kind           // a kind that has a sink
	At   netip.AddrPort // port 0: one that is free
	Size int            // of requests and answers; 0 = 1
	// Nap makes a sink of packets look for them at this interval instead of being woken by each. Waking a thread on
	// another CPU is work of the sender, and on virtual CPUs more expensive than the path. Times of arrival are
	// only as exact as this. 0 = it is woken.
	Nap time.Duration
	// Buffer is how many bytes of packets, with the kernel's overhead, the sink may lag behind; 0 = 4 MiB.
	Buffer int
	// Gather is as in Load.
	Gather int
	// Stamped takes the time of a packet from the kernel, which notes it when the packet comes in (SO_TIMESTAMPNS), and
	// not from when the sink got to read it. For packets, without Nap.
	Stamped bool
}

// Sink is a receiving end: it reads a stream, answers requests, or counts packets, for one client at a time.
type Sink struct {
	opts   SinkOptions
	addr   netip.AddrPort
	fd     int
	finish atomic.Bool // end when nothing is left to read
	abort  atomic.Bool // end now
	ended  chan struct{}
	done   chan struct{}

	// Written by the sink's thread, read after done.
	result SinkResult
	count  *counter
	run    uint64
	// overflowed is how many packets the socket had dropped before the run.
	overflowed uint32
	cpu        time.Duration
	err        error
}

// Listen opens a sink. It serves until Finish.
func Listen(e Endpoint, opts SinkOptions) (*Sink, error) {
	load, err := Load{Kind: opts.Kind, Size: opts.Size, Gather: opts.Gather}.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Kind.alone() {
		return nil, fmt.Errorf("%s needs no sink: every host answers it", opts.Kind)
	}
	opts.Size = load.Size
	s := &Sink{opts: opts, ended: make(chan struct{}), done: make(chan struct{})}
	opened := make(chan error, 1)
	go func() {
		defer close(s.done)
		s.err = e.run(func() error {
			err := s.open()
			opened <- err
			if err != nil {
				return err
			}
			return s.serve()
		})
	}()
	select {
	case err = <-opened:
	case <-s.done: // the namespace or the CPU was not available
		err = s.err
	}
	if err != nil {
		return nil, fmt.Errorf("open %s sink at %s: %w", opts.Kind, opts.At, err)
	}
	return s, nil
}

// Addr is where the sink listens.
func (s *Sink) Addr() netip.AddrPort { return s.addr }

// Finish lets the sink read what is on the way, for half a second at most, ends it and returns its result. Call it
// once.
func (s *Sink) Finish() (SinkResult, error) {
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	if s.opts.Kind == KindUDP {
		select {
		case <-s.ended:
		case <-s.done:
		case <-patience.C:
			patience.Reset(endPatience)
		}
	}
	s.finish.Store(true)
	// This wakes a goroutine that is blocked in the socket; a packet socket returns ENOTCONN but wakes it, too.
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	select {
	case <-s.done:
	case <-patience.C:
		s.abort.Store(true)
		<-s.done
	}
	overflowed, err := overflow(s.fd)
	unix.Close(s.fd)
	if s.count != nil {
		total := s.count.total()
		total.Overflowed = uint64(overflowed - s.overflowed)
		s.result.Packets = &total
	}
	return s.result, errors.Join(s.err, err)
}

// stopping reports whether a sink with nothing to read must end.
func (s *Sink) stopping() bool { return s.finish.Load() || s.abort.Load() }

func (s *Sink) open() error {
	sa, family, err := sockaddr(s.opts.At)
	if err != nil {
		return err
	}
	kind, wake := unix.SOCK_STREAM, pollInterval
	if s.opts.Kind == KindUDP {
		kind, wake = unix.SOCK_DGRAM, packetWake
	}
	if s.fd, err = open(family, kind, 0, wake); err != nil {
		return err
	}
	if err = s.bind(sa, kind); err != nil {
		unix.Close(s.fd)
	}
	return err
}

// bind prepares the socket. Accepted connections inherit its options.
func (s *Sink) bind(sa unix.Sockaddr, kind int) error {
	if kind == unix.SOCK_DGRAM {
		size := cmp.Or(s.opts.Buffer, receiveBuffer)
		// Forcing the size needs CAP_NET_ADMIN; without it the system's limit applies.
		if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) != nil {
			_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size)
		}
	}
	if err := unix.Bind(s.fd, sa); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return fmt.Errorf("set TCP_NODELAY: %w", err)
		}
		if s.opts.Gather > 0 {
			if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, s.opts.Gather); err != nil {
				return fmt.Errorf("set SO_RCVLOWAT: %w", err)
			}
		}
		if err := unix.Listen(s.fd, unix.SOMAXCONN); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	var err error
	s.addr, err = boundTo(s.fd)
	return err
}
