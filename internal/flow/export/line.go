package export

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow/ipfix"
)

// line is one session: a connection on which templates were sent and messages are numbered.
type line struct {
	wire     *connection
	to       io.ReadWriter // the wire, or TLS over it
	identity identity      // TLS: the files that it began with
	sequence uint32
	// TLS 1.3: the collector asked who this host is, and says what it thinks of the answer after the handshake
	asked bool
	// Of the stream, which holds its lock:
	leaving bool // it is given nothing more
	failed  bool // a message could not be taken
	over    bool
	ended   chan struct{} // closed when it is over
	closing sync.Once
}

// send hands a message to the connection. What was not confirmed comes back at the end of the session.
func (l *line) send(p parcel) parcel {
	ipfix.SetSequence(p.bytes, l.sequence)
	ipfix.SetExported(p.bytes, time.Now())
	l.sequence += p.records
	_, err := l.to.Write(p.bytes)
	p.end, _, _ = l.wire.progress()
	if err != nil {
		p.end++ // more than will ever be confirmed
		l.failed = true
		if l.wire.fault() == nil { // otherwise the reader is woken
			l.wire.abort()
		}
	}
	return p
}

// room reports whether the connection takes a message now.
func (l *line) room() bool {
	_, _, room := l.wire.progress()
	return room && !l.leaving && !l.failed
}

// flush hands the kernel what it did not take before, and then what waits behind it, until the session is over.
func (l *line) flush(s *stream) {
	for {
		select {
		case <-l.wire.more:
		case <-l.ended:
			return
		}
		if !l.wire.flush() {
			return
		}
		s.mu.Lock()
		s.advance()
		s.mu.Unlock()
	}
}

// errAnswers is that who listens is no collector: IPFIX has no answers.
var errAnswers = errors.New("who listens there sends something, which no IPFIX collector does: another service has " +
	"this port, or it wants transport: tls")

// read waits for the end of the connection, and says why it ended.
func (l *line) read() error {
	n, err := l.to.Read(make([]byte, 1))
	if fault := l.wire.fault(); fault != nil && !errors.Is(fault, unix.EPIPE) {
		err = fault
	}
	switch {
	case n > 0:
		return errAnswers
	case errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE):
		return errors.New("the collector has closed the connection")
	case errors.Is(err, unix.ECONNRESET):
		return errors.New("the collector's host has broken off the connection (connection reset)")
	case errors.Is(err, unix.ETIMEDOUT):
		return errors.New("the collector's host has confirmed nothing for too long (connection timed out)")
	}
	return tlsFault(err, l.identity.TLS)
}

// proving is how long the session has to last before it is sent something.
func (l *line) proving(p pace) time.Duration {
	if l.asked {
		return p.proving
	}
	return 0
}

// closeWhen ends the connection in order, once.
func (l *line) closeWhen(idle bool) {
	if !idle {
		return
	}
	l.closing.Do(func() {
		if c, ok := l.to.(interface{ CloseWrite() error }); ok && l.to != io.ReadWriter(l.wire) {
			_ = c.CloseWrite() // TLS says goodbye
		}
		_ = l.wire.TCPConn.Close()
	})
}

var _ net.Conn = (*connection)(nil)
