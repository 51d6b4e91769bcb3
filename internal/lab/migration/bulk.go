package migration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

const (
	// bin is the grain in which arriving bytes are counted.
	bin = 5 * time.Millisecond
	// backFor is for how long the transfer must have its rate to count as back at it, and backAt the part of it.
	backFor = 50 * time.Millisecond
	backAt  = 0.9
)

// bulk is a TCP transfer from outside to the guest at a fixed rate.
type bulk struct {
	began    time.Time
	bytes    []float64 // arrived, by bin from began on
	ends     sync.WaitGroup
	closers  []interface{ Close() error }
	mu       sync.Mutex
	rate     float64 // bits per second that it is paced at
	listener net.Listener
	sender   syscall.RawConn
	// resent are segments that the sender sent again, timeouts how often its retransmission timer ran out (Linux 6.7 or
	// later). Set by stop.
	resent, timeouts uint64
}

// startBulk starts the transfer. Its rate is that of the bytes on the way; headers come on top.
func startBulk(ctx context.Context, server, client *netns.NS, rate float64) (_ *bulk, err error) {
	b := &bulk{began: time.Now(), rate: rate}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start the bulk transfer: %w", err), b.stop())
		}
	}()
	if err = server.Do(func() (err error) {
		b.listener, err = net.Listen("tcp4", guestIP+":0")
		return err
	}); err != nil {
		return b, err
	}
	b.closers = append(b.closers, b.listener)
	if err := b.send(ctx, client, b.listener.Addr().String()); err != nil {
		return b, err
	}
	in, err := b.listener.Accept()
	if err != nil {
		return b, err
	}
	b.closers = append(b.closers, in)
	b.ends.Go(func() { b.take(in) })
	return b, nil
}

// callBulk starts a transfer to a server that takes everything. What it has acknowledged counts as arrived.
func callBulk(ctx context.Context, client *netns.NS, to string, rate float64) (*bulk, error) {
	b := &bulk{began: time.Now(), rate: rate}
	err := b.send(ctx, client, to)
	if err == nil {
		b.ends.Go(b.acknowledged)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the bulk transfer: %w", err), b.stop())
	}
	return b, nil
}

// send connects to the server and sends until stop.
func (b *bulk) send(ctx context.Context, client *netns.NS, to string) error {
	var conn net.Conn
	if err := client.Do(func() (err error) {
		d := net.Dialer{Timeout: readyTime, Control: paced(b.rate)}
		conn, err = d.DialContext(ctx, "tcp4", to)
		return err
	}); err != nil {
		return err
	}
	b.closers = append(b.closers, conn)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	b.sender = raw
	b.ends.Go(func() {
		for buf := make([]byte, 64<<10); ; {
			if _, err := conn.Write(buf); err != nil {
				return // stop closes it
			}
		}
	})
	return nil
}

// acknowledged counts what the other side has acknowledged, until the connection is closed.
func (b *bulk) acknowledged() {
	tick := time.NewTicker(bin)
	defer tick.Stop()
	for before := uint64(0); ; <-tick.C {
		info, err := b.info()
		if err != nil {
			return
		}
		b.add(float64(info.Bytes_acked - before))
		before = info.Bytes_acked
	}
}

// info is what the sender's kernel knows of the connection.
func (b *bulk) info() (info *unix.TCPInfo, err error) {
	var failed error
	err = b.sender.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, errors.Join(err, failed)
}

// paced makes the kernel send at that rate at most.
func paced(rate float64) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(rate/8))
		})
		return errors.Join(err, failed)
	}
}

func (b *bulk) take(in net.Conn) {
	for buf := make([]byte, 256<<10); ; {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		b.add(float64(n))
	}
}

// add counts bytes that have arrived.
func (b *bulk) add(n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := int(time.Since(b.began) / bin)
	for len(b.bytes) <= at {
		b.bytes = append(b.bytes, 0)
	}
	b.bytes[at] += n
}

// stop ends the transfer and waits for its ends.
func (b *bulk) stop() error {
	if b.sender != nil {
		if info, err := b.info(); err == nil { // otherwise it is closed
			b.resent, b.timeouts = uint64(info.Total_retrans), uint64(info.Total_rto)
		}
	}
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	b.ends.Wait()
	b.closers = nil
	return errors.Join(errs...)
}

// between is what arrived from one time to another, in bits per second.
func (b *bulk) between(from, to time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, last := max(int(from.Sub(b.began)/bin), 0), int(to.Sub(b.began)/bin)
	sum := 0.0
	for i := first; i < last && i < len(b.bytes); i++ {
		sum += b.bytes[i]
	}
	if last <= first {
		return 0
	}
	return 8 * sum / (bin * time.Duration(last-first)).Seconds()
}

// back is how long after a time the transfer has had its rate of before again for a while, in seconds; NaN if it had
// not by the end.
func (b *bulk) back(stopped, runs, end time.Time) float64 {
	before := b.between(stopped.Add(-4*backFor), stopped)
	if before == 0 {
		return math.NaN()
	}
	for at := runs; at.Add(backFor).Before(end); at = at.Add(bin) {
		if b.between(at, at.Add(backFor)) >= backAt*before {
			return max(at.Sub(runs).Seconds(), 0)
		}
	}
	return math.NaN()
}
