package traffic

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// serve does the sink's work until it is stopped.
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
			// A client whose time is up may leave in the middle of something; a client that did not want to
			// reports why.
			s.result.Broken++
		}
		unix.Close(conn)
	}
}

// accept accepts the next connection. It makes the system call itself because the library's would allocate an address
// each time.
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

// swallow reads until the sender closes the connection.
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

// answer returns each request; the connection ends after the given number of them, or when the client leaves.
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
	if s.opts.Stamped {
		return s.countStamped()
	}
	buf := make([]byte, maxPayload)
	if s.opts.Nap > 0 {
		fineTimer()
		if err := unix.SetNonblock(s.fd, true); err != nil {
			return fmt.Errorf("make the socket non-blocking: %w", err)
		}
	}
	for !s.abort.Load() {
		n, err := unix.Read(s.fd, buf)
		// A socket that was shut down returns what it has, then nothing without an error.
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
		if s.count != nil { // packets that overflowed before the first one was read belong to the first run
			s.overflowed, _ = overflow(s.fd) // an error occurs again when the sink ends, and is reported then
		}
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
