package bench

import (
	"errors"
	"fmt"
	"net"
	"time"

	"heddle/internal/flow/udpbatch"
)

// loopback is a pair of UDP sockets of this machine. One sends; the other receives and discards.
type loopback struct {
	conn     *net.UDPConn
	sender   *udpbatch.Sender
	batch    udpbatch.Batch
	receiver *net.UDPConn
	done     chan struct{}
}

// codecStall is how long a send may wait for space.
const codecStall = time.Second

func newLoopback() (*loopback, error) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("a socket that receives: %w", err)
	}
	l := &loopback{receiver: receiver, done: make(chan struct{})}
	if l.conn, err = net.DialUDP("udp4", nil, receiver.LocalAddr().(*net.UDPAddr)); err != nil {
		return nil, errors.Join(fmt.Errorf("a socket that sends: %w", err), receiver.Close())
	}
	if l.sender, err = udpbatch.NewSender(l.conn); err != nil {
		return nil, errors.Join(fmt.Errorf("a socket that sends: %w", err), l.conn.Close(), receiver.Close())
	}
	go l.receive()
	return l, nil
}

// receive reads one datagram at a time, like a collector without batches: dividing what was sent in one piece is part
// of the cost of sending.
func (l *loopback) receive() {
	defer close(l.done)
	b := make([]byte, 1<<16)
	for {
		if _, err := l.receiver.Read(b); err != nil {
			return // closed
		}
	}
}

// send queues a message, and sends the queued ones if they are many, like the exporter.
func (l *loopback) send(m []byte) error {
	if l.batch.Full(len(m)) {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.batch.Add(m)
	return nil
}

// encode writes n records of a shape and sends them.
func (l *loopback) encode(s *codecShape, records int) (int, error) {
	n, err := s.encode(records, l.send)
	return n, errors.Join(err, l.flush())
}

// flush sends the queued messages.
func (l *loopback) flush() error {
	_, err := l.sender.Send(&l.batch, codecStall)
	l.batch.Reset()
	return err
}

func (l *loopback) close() error {
	err := errors.Join(l.conn.Close(), l.receiver.Close())
	<-l.done
	return err
}
