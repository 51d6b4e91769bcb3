package traffic

import (
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
	// fullRateNap fits some dozens of packets at the highest rates, a hundredth of what the receive buffer holds.
	fullRateNap = 200 * time.Microsecond
)

// SinkOptions is what a sink shall do.
type SinkOptions struct {
	Kind Kind           // all but KindEcho
	At   netip.AddrPort // port 0: one that is free
	Size int            // of requests and answers; 0 = 1
	// Nap makes a sink of packets look for them at this interval instead of being woken by each. Waking a thread on another
	// CPU is the sender's work, and on virtual CPUs dearer than the path. Times of arrival are only as exact as this. 0 = woken.
	Nap time.Duration
}

// Sink is a receiving end: it swallows a stream, answers requests, or counts packets, for one client at a time.
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
	cpu    time.Duration
	err    error
}

// Listen opens a sink. It serves until Finish.
func Listen(e Endpoint, opts SinkOptions) (*Sink, error) {
	load, err := Load{Kind: opts.Kind, Size: opts.Size}.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Kind == KindEcho {
		return nil, errors.New("echo needs no sink: every host answers it")
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
	case <-s.done: // the namespace or the CPU was not to be had
		err = s.err
	}
	if err != nil {
		return nil, fmt.Errorf("open %s sink at %s: %w", opts.Kind, opts.At, err)
	}
	return s, nil
}

// Addr is where the sink listens.
func (s *Sink) Addr() netip.AddrPort { return s.addr }

// Finish lets the sink read what is on the way, for half a second at most, ends it and returns what it has seen. It is
// called once.
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
	// Wakes whoever is blocked in it; a packet socket answers ENOTCONN and does so all the same.
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	select {
	case <-s.done:
	case <-patience.C:
		s.abort.Store(true)
		<-s.done
	}
	unix.Close(s.fd)
	if s.count != nil {
		total := s.count.total()
		s.result.Packets = &total
	}
	return s.result, s.err
}

// stopping says whether a sink with nothing to read shall end.
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
		// The forced size needs CAP_NET_ADMIN; without it the system's limit applies.
		if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
			_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
		}
	}
	if err := unix.Bind(s.fd, sa); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return fmt.Errorf("set TCP_NODELAY: %w", err)
		}
		if err := unix.Listen(s.fd, unix.SOMAXCONN); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	var err error
	s.addr, err = boundTo(s.fd)
	return err
}

func (s *Sink) serve() error {
	if s.opts.Kind == KindUDP {
		return s.countPackets()
	}
	before := threadCPU()
	defer func() { s.result.CPUSeconds = (threadCPU() - before).Seconds() }()
	for {
		conn, err := s.accept()
		if errors.Is(err, errHalted) {
			return nil
		}
		if err != nil {
			return err
		}
		s.result.Connections++
		if s.serveConn(conn) != nil {
			// A client may leave in the middle of something, as one does whose time is up; if it did not want to, it says why.
			s.result.Broken++
		}
		unix.Close(conn)
	}
}

// accept takes the next connection. The system call is made by hand as the library's would allocate an address each time.
func (s *Sink) accept() (int, error) {
	for {
		conn, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(s.fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
		switch {
		case errno == 0:
			return int(conn), nil
		case s.stopping():
			return -1, errHalted
		case again(errno), errno == unix.ECONNABORTED:
		default:
			return -1, fmt.Errorf("accept: %w", errno)
		}
	}
}

func (s *Sink) serveConn(conn int) error {
	switch s.opts.Kind {
	case KindStream:
		return s.swallow(conn)
	case KindRR:
		return s.answer(conn, -1)
	}
	return s.answer(conn, 1)
}

// swallow reads until the sender closes.
func (s *Sink) swallow(conn int) error {
	buf := make([]byte, sinkBuffer)
	for !s.abort.Load() {
		n, err := unix.Read(conn, buf)
		switch {
		case err == nil && n == 0, err == unix.ECONNRESET:
			return nil
		case err == nil:
			s.result.Bytes += uint64(n)
		case !again(err):
			return fmt.Errorf("read: %w", err)
		case s.stopping():
			return errHalted
		}
	}
	return errHalted
}

// answer gives back each request; after the given number of them, or when the client leaves, the connection ends.
func (s *Sink) answer(conn, requests int) error {
	buf := make([]byte, s.opts.Size)
	for ; requests != 0 && !s.abort.Load(); requests-- {
		n, err := readFull(conn, buf, s.stopping)
		if err != nil || n == 0 {
			return err
		}
		s.result.Bytes += uint64(n)
		if err := writeFull(conn, buf, s.stopping); err != nil {
			return err
		}
	}
	return nil
}

// countPackets counts numbered packets; a new run number begins a new count.
func (s *Sink) countPackets() error {
	buf := make([]byte, maxPayload)
	if s.opts.Nap > 0 {
		fineTimer()
		if err := unix.SetNonblock(s.fd, true); err != nil {
			return fmt.Errorf("make the socket non-blocking: %w", err)
		}
	}
	for !s.abort.Load() {
		n, err := unix.Read(s.fd, buf)
		// A socket that was shut down gives what it has, then nothing without an error.
		if s.stopping() && (err != nil || n == 0) {
			return nil
		}
		if again(err) {
			nap(s.opts.Nap)
			continue
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if p, ok := parseHeader(buf[:n]); ok {
			s.take(p, n, time.Now())
		}
	}
	return nil
}

func (s *Sink) take(p header, size int, now time.Time) {
	if s.count == nil || p.run != s.run {
		s.count, s.run, s.cpu = &counter{}, p.run, 0
		s.result = SinkResult{}
	}
	switch p.mark {
	case markWarmup:
		s.count.warm(now)
	case markMeasured:
		if s.cpu == 0 {
			s.cpu = threadCPU()
		}
		s.count.add(p.number, now)
		s.result.Bytes += uint64(size)
	case markEnd:
		if s.count.result.Complete {
			return
		}
		s.count.finish(p.number, now)
		if s.cpu != 0 {
			s.result.CPUSeconds = (threadCPU() - s.cpu).Seconds()
		}
		select {
		case <-s.ended:
		default:
			close(s.ended)
		}
	}
}
