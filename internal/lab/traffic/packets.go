package traffic

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// headerSize is the least content of a numbered packet: mark, run, number. 18 bytes of payload make the shortest
// Ethernet frame over IPv4, 60 bytes without its checksum.
const headerSize = 18

// The marks of numbered packets.
const (
	markWarmup   = 'w'
	markMeasured = 'm'
	markEnd      = 'e' // carries how many measured packets were sent
)

// EndMarks is how many packets a sender adds to say that there are no more, because the path may lose some.
const EndMarks = 3

// header is the start of a numbered packet.
type header struct {
	mark   byte
	run    uint64
	number uint64
}

func (p header) put(buf []byte) {
	buf[0], buf[1] = p.mark, 0
	binary.BigEndian.PutUint64(buf[2:], p.run)
	binary.BigEndian.PutUint64(buf[10:], p.number)
}

// parseHeader reads the start of a packet; ok is false for a packet that is not ours.
func parseHeader(buf []byte) (p header, ok bool) {
	if len(buf) < headerSize {
		return p, false
	}
	p = header{buf[0], binary.BigEndian.Uint64(buf[2:]), binary.BigEndian.Uint64(buf[10:])}
	return p, p.mark == markWarmup || p.mark == markMeasured || p.mark == markEnd
}

// sendPackets sends numbered packets, one system call each, as fast as possible or at the given rate.
func sendPackets(h *halt, load Load, to netip.AddrPort) (*Sent, error) {
	flows, err := dialFlows(to, max(load.Flows, 1))
	if err != nil {
		return nil, err
	}
	defer flows.close()
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	p := header{mark: markWarmup, run: binary.BigEndian.Uint64(id[:])}
	buf := make([]byte, load.Size)
	c := newClock(h, load)
	pace := newPacer(load.Rate)
	var refused uint64
	for {
		now := pace.wait(h)
		if c.step(now) {
			if c.phase == over {
				break
			}
			p.mark, p.number, refused = markMeasured, 0, 0
		}
		p.put(buf)
		switch _, err := unix.Write(flows.next(), buf); {
		case err == nil:
			p.number++
		case refusal(err):
			refused++
		default:
			return nil, fmt.Errorf("send: %w", err)
		}
	}
	if p.mark == markWarmup {
		return nil, errors.New("halted before the measured interval began")
	}
	end(flows.next(), p, buf)
	return &Sent{
		Seconds: c.seconds, Packets: p.number, PacketsPerSecond: c.per(p.number), Refused: refused, CPUSeconds: c.cpu,
	}, nil
}

// refusal reports whether an error of send means that only this packet did not leave: no buffer, no neighbour, or the
// answer to an earlier packet (RFC 1122, section 4.1.3.3). The path under test may be down for a while; the sink counts
// that.
func refusal(err error) bool {
	switch err {
	case unix.ENOBUFS, unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN,
		unix.EPERM:
		return true
	}
	return false
}

// packetFlows are connected sockets with ports of their own, which take turns.
type packetFlows struct {
	fds  []int
	turn int
}

func dialFlows(to netip.AddrPort, n int) (*packetFlows, error) {
	f := &packetFlows{}
	for range n {
		fd, err := dialUDP(to)
		if err != nil {
			f.close()
			return nil, err
		}
		f.fds = append(f.fds, fd)
	}
	return f, nil
}

func (f *packetFlows) next() int {
	if f.turn++; f.turn >= len(f.fds) {
		f.turn = 0
	}
	return f.fds[f.turn]
}

func (f *packetFlows) close() {
	for _, fd := range f.fds {
		unix.Close(fd)
	}
}

func dialUDP(to netip.AddrPort) (int, error) {
	sa, family, err := sockaddr(to)
	if err != nil {
		return -1, err
	}
	fd, err := open(family, unix.SOCK_DGRAM, 0, pollInterval)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connect: %w", err)
	}
	return fd, nil
}

// end sends the number of packets to the sink.
func end(fd int, p header, buf []byte) {
	p.mark = markEnd
	p.put(buf)
	for i := range EndMarks {
		if i > 0 {
			time.Sleep(time.Millisecond) // apart, so that one overflow does not lose them all
		}
		// A mark that can't be sent is like a lost one: the sink can do without.
		_, _ = unix.Write(fd, buf)
	}
}

// pacer spaces packets evenly. A delayed sender catches up, so that the average rate is right.
type pacer struct {
	every time.Duration // 0: no pace
	next  time.Time
}

const (
	// timerSlack is how late the kernel may wake us: 1 ns instead of the default 50 µs.
	timerSlack = 1
	// maxLag is how far a sender may fall behind before it gives up catching up.
	maxLag = 10 * time.Millisecond
)

func newPacer(rate float64) *pacer {
	if rate == 0 {
		return &pacer{}
	}
	fineTimer()
	return &pacer{every: time.Duration(float64(time.Second) / rate), next: time.Now()}
}

// fineTimer makes the calling thread's sleeps exact. If that fails, the packets only come in larger bursts.
func fineTimer() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) }

// nap sleeps in the kernel, without the Go scheduler; a signal may end it early.
func nap(d time.Duration) {
	if d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil)
	}
}

// wait returns the time when the next packet is due or the measurement ends.
func (p *pacer) wait(h *halt) time.Time {
	now := time.Now()
	if p.every == 0 {
		return now
	}
	for !h.asked() && now.Before(p.next) {
		nap(min(p.next.Sub(now), pollInterval))
		now = time.Now()
	}
	p.next = p.next.Add(p.every)
	if now.Sub(p.next) > maxLag {
		p.next = now
	}
	return now
}
