package export

import (
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow/ipfix"
)

// line is one session: a connection with its own templates and message numbers.
type line struct {
	wire     *connection
	to       io.ReadWriter // the wire, or TLS over it
	identity identity      // TLS: the files with which it began
	sequence uint32
	// TLS 1.3: the collector asked for a certificate, and reports only after the handshake whether it accepts it
	asked bool
	// The stream's lock guards these:
	leaving bool // it gets no more messages
	failed  bool // a message was not accepted
	parted  bool // this side has said goodbye
	over    bool
	ended   chan struct{} // closed when the session is over
}

// send hands a message to the connection. Messages that were not confirmed come back at the end of the session.
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

// accepts reports whether the connection accepts a message now.
func (l *line) accepts() bool {
	_, _, room := l.wire.progress()
	return room && !l.leaving && !l.failed
}

// flush hands the kernel what it did not accept before, and then what waits after that, until the session is over.
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

// errAnswers is that the listener is no collector, because IPFIX has no answers.
var errAnswers = errors.New("who listens there sends something, which no IPFIX collector does: another service has " +
	"this port, or it wants transport: tls")

// read waits for the end of the connection, and returns why it ended.
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

// proving is how long the session must last before anything is sent in it.
func (l *line) proving(p pace) time.Duration {
	if l.asked {
		return p.proving
	}
	return 0
}

// closeWhen ends the connection in an orderly way when nothing is under way, once: it says goodbye, and gives the
// collector the time to do the same. A socket that is closed before that answers the collector's goodbye with a reset,
// which may take from the collector what it has not read yet (RFC 9293, section 3.10.7.1; RFC 1122, 4.2.2.13).
func (l *line) closeWhen(idle bool, patience time.Duration) {
	if !idle || l.parted {
		return
	}
	l.parted = true
	if c, ok := l.to.(interface{ CloseWrite() error }); ok && l.to != io.ReadWriter(l.wire) {
		_ = c.CloseWrite() // TLS says goodbye
	}
	_ = l.wire.CloseWrite()
	_ = l.wire.SetReadDeadline(time.Now().Add(patience))
}

// close frees the connection. Only one that both sides did not end in order is broken off.
func (l *line) close() {
	if l.parted {
		_ = l.wire.TCPConn.Close()
		return
	}
	l.wire.abort()
}

var _ net.Conn = (*connection)(nil)
