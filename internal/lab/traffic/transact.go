package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// requestResponse exchanges a message again and again on one connection.
func requestResponse(h *halt, load Load, to netip.AddrPort) (*Transactions, error) {
	fd, err := dial(h, to)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, load.Size)
	return transact(h, load, func(stop func() bool) error { return exchange(fd, buf, stop) })
}

// connectRequestResponse makes a connection per transaction. The client resets it once it has the answer, because
// TIME_WAIT would use up the ports within seconds (RFC 9293, section 3.6.1); every path carries the same frames.
func connectRequestResponse(h *halt, load Load, to netip.AddrPort) (*Transactions, error) {
	servers, family, err := consecutive(to, load.Addresses)
	if err != nil {
		return nil, err
	}
	turn := 0
	buf := make([]byte, load.Size)
	once := unix.Linger{Onoff: 1, Linger: 0}
	return transact(h, load, func(stop func() bool) error {
		fd, err := open(family, unix.SOCK_STREAM, 0, pollInterval)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &once); err != nil {
			return fmt.Errorf("set SO_LINGER: %w", err)
		}
		turn++
		if err := connect(h, fd, servers[turn%len(servers)]); err != nil {
			return err
		}
		return exchange(fd, buf, stop)
	})
}

// consecutive are n consecutive addresses, from the given one, at one port.
func consecutive(from netip.AddrPort, n int) (all []unix.Sockaddr, family int, err error) {
	for range max(n, 1) {
		sa, f, err := sockaddr(from)
		if err != nil {
			return nil, 0, err
		}
		all, family = append(all, sa), f
		from = netip.AddrPortFrom(from.Addr().Next(), from.Port())
	}
	return all, family, nil
}

// exchange sends the message and waits for one of the same size.
func exchange(fd int, buf []byte, stop func() bool) error {
	if err := writeFull(fd, buf, stop); err != nil {
		return err
	}
	n, err := readFull(fd, buf, stop)
	if err == nil && n == 0 {
		return errors.New("the sink closed the connection")
	}
	return err
}

// transact runs transactions through warm-up and interval and collects their latency.
func transact(h *halt, load Load, do func(stop func() bool) error) (*Transactions, error) {
	c := newClock(h, load)
	var latency histogram
	stop := func() bool { c.step(time.Now()); return c.phase == over }
	for last := c.start; c.phase != over; {
		was := c.phase
		if err := do(stop); errors.Is(err, errHalted) {
			c.step(time.Now())
			break
		} else if err != nil {
			return nil, err
		}
		now := time.Now()
		// A transaction counts if it is completely within the interval.
		if was == measuring && c.phase == measuring {
			latency.add(now.Sub(last))
		}
		c.step(now)
		last = now
	}
	if latency.count == 0 {
		return nil, ErrNoTransaction
	}
	return &Transactions{
		Seconds: c.seconds, Count: latency.count, PerSecond: c.per(latency.count),
		Latency: latency.latency(), CPUSeconds: c.cpu, times: &latency,
	}, nil
}
