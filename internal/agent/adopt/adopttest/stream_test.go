package adopttest

import (
	"net"
	"sync/atomic"
	"time"

	"heddle/internal/test/testkit/realhost"
)

// stream is a TCP connection from the host to the gateway that echoes; it counts round trips and the longest of them.
type stream struct {
	trips   atomic.Int64
	longest atomic.Int64
	stop    chan struct{}
	done    chan error
}

func (e *estate) stream(to string) *stream {
	e.T.Helper()
	var l net.Listener
	if err := e.gateway.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(to, "0"))
		return err
	}); err != nil {
		e.T.Fatal(err)
	}
	e.T.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 64)
		for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	// Connect without net.Dialer, which may use another thread.
	var c net.Conn
	if err := e.NS.Do(func() (err error) { c, err = dialHere(l.Addr().(*net.TCPAddr)); return err }); err != nil {
		e.T.Fatal(err)
	}
	s := &stream{stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { s.done <- s.talk(c) }()
	return s
}

func (s *stream) talk(c net.Conn) error {
	defer c.Close()
	b := make([]byte, 64)
	for {
		select {
		case <-s.stop:
			return nil
		case <-time.After(time.Millisecond):
		}
		began := time.Now()
		if err := c.SetDeadline(began.Add(realhost.Patience)); err != nil {
			return err
		}
		if _, err := c.Write([]byte("still there?")); err != nil {
			return err
		}
		if _, err := c.Read(b); err != nil {
			return err
		}
		s.trips.Add(1)
		s.longest.Store(max(s.longest.Load(), int64(time.Since(began))))
	}
}

// goesOn waits until the stream makes more round trips.
func (e *estate) goesOn(s *stream, why string) {
	e.T.Helper()
	from := s.trips.Load()
	e.Await("the TCP connection goes on "+why, func() bool { return s.trips.Load() > from+20 })
}

func (e *estate) end(s *stream) {
	e.T.Helper()
	close(s.stop)
	if err := <-s.done; err != nil {
		e.T.Errorf("the TCP connection broke: %v", err)
	}
	e.T.Logf("%d round trips, the longest took %s", s.trips.Load(), time.Duration(s.longest.Load()))
}
