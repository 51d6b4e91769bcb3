package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Scanned is the outcome of a scan. Answers later than 100 ms after the last SYN are not seen.
type Scanned struct {
	Seconds   float64 `json:"seconds"`
	Sent      uint64  `json:"sent"` // SYNs
	PerSecond float64 `json:"per_second"`
	Refused   uint64  `json:"refused"`  // by the sender's own kernel
	Answered  uint64  `json:"answered"` // SYNs that a reset or a SYN/ACK came back for
	// Flows is how many different flows had a SYN, FlowsAnswered how many of them got an answer.
	Flows         uint64  `json:"flows"`
	FlowsAnswered uint64  `json:"flows_answered"`
	CPUSeconds    float64 `json:"cpu_s"`
}

const (
	tcpHeader = 20 // bytes, without options (RFC 9293, section 3.1)
	// A flow is a source port and one of the first scanPorts destination ports.
	scanPorts      = 1000
	scanSourceBase = 20000
	scanWindow     = 1024
	scanPatience   = 100 * time.Millisecond
	// scanNap is how long a scan sleeps between bursts: sending one SYN at a time would need a wake-up for each.
	scanNap = time.Millisecond
	// A delayed scan catches up in bursts of scanBurst, or of what its rate sends in scanBurstTime: longer bursts
	// would overflow the queues on the way.
	scanBurst     = 64
	scanBurstTime = 5 * time.Millisecond
	scanBuffer    = 1 << 20

	tcpSYN, tcpRST, tcpACK = 0x02, 0x04, 0x10
)

// scanner sends the SYNs of one scan. The sequence number of each identifies it, and its answer acknowledges that
// number (RFC 9293, section 3.10.7.1), so that answers are counted exactly.
type scanner struct {
	fd    int
	v6    bool
	base  uint32 // sequence number of the first SYN
	flows int
	pseud uint32 // sum of the pseudo header; for IPv6 the kernel has its own
	next  uint32 // number of the next SYN
	first uint32 // number of the first measured SYN
	got   flags
	by    flags // by flow
	res   Scanned
	seg   [tcpHeader]byte
	buf   [1 << 11]byte
}

// flags are bits, indexed by number.
type flags []uint64

func (b flags) set(n uint32) (fresh bool) {
	word, mask := &b[n/64], uint64(1)<<(n%64)
	fresh = *word&mask == 0
	*word |= mask
	return fresh
}

func scan(h *halt, load Load, to netip.Addr) (*Scanned, error) {
	s, err := newScanner(load, to)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s.fd)
	fineTimer()
	c := newClock(h, load)
	begun := c.start
	for c.phase != over {
		now := time.Now()
		if c.step(now) && c.phase == measuring {
			s.first, s.res = s.next, Scanned{}
			clear(s.by)
		}
		if c.phase == over {
			break
		}
		due := min(uint32(load.Rate*now.Sub(begun).Seconds()), s.next+
			max(scanBurst, uint32(load.Rate*scanBurstTime.Seconds())))
		for s.next <= due && !h.asked() {
			if err := s.send(); err != nil {
				return nil, err
			}
		}
		if err := s.collect(); err != nil {
			return nil, err
		}
		nap(scanNap)
	}
	if c.seconds == 0 {
		return nil, errors.New("halted before the measured interval began")
	}
	for end := time.Now().Add(scanPatience); s.res.Answered < s.res.Sent && time.Now().Before(end); nap(scanNap) {
		if err := s.collect(); err != nil {
			return nil, err
		}
	}
	s.res.Seconds, s.res.CPUSeconds, s.res.PerSecond = c.seconds, c.cpu, c.per(s.res.Sent)
	s.res.Flows = min(s.res.Sent, uint64(s.flows))
	return &s.res, nil
}

func newScanner(load Load, to netip.Addr) (*scanner, error) {
	sa, family, err := sockaddr(netip.AddrPortFrom(to, 0))
	if err != nil {
		return nil, err
	}
	s := &scanner{v6: family == unix.AF_INET6, base: rand.Uint32(), flows: load.Flows, by: make(flags, load.Flows/64+1),
		got: make(flags, scanWindowed/64)}
	if s.fd, err = open(family, unix.SOCK_RAW, unix.IPPROTO_TCP, pollInterval); err != nil {
		return nil, fmt.Errorf("%w (raw sockets need root or CAP_NET_RAW)", err)
	}
	if err := s.prepare(sa); err != nil {
		unix.Close(s.fd)
		return nil, err
	}
	return s, nil
}

func (s *scanner) prepare(to unix.Sockaddr) error {
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, scanBuffer) != nil {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, scanBuffer) // the system's limit applies
	}
	if s.v6 { // the kernel computes the checksum, also over the pseudo header (RFC 3542, section 3.1)
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_CHECKSUM, 16); err != nil {
			return fmt.Errorf("set IPV6_CHECKSUM: %w", err)
		}
	}
	if err := unix.Connect(s.fd, to); err != nil {
		// a connected raw socket only receives from its peer, and knows its own address
		return fmt.Errorf("connect: %w", err)
	}
	if to4, ok := to.(*unix.SockaddrInet4); ok {
		from, err := boundTo(s.fd)
		if err != nil {
			return err
		}
		a := from.Addr().As4()
		s.pseud = sum16(a[:]) + sum16(to4.Addr[:]) + unix.IPPROTO_TCP + tcpHeader
	}
	if err := unix.SetNonblock(s.fd, true); err != nil {
		return fmt.Errorf("make the socket non-blocking: %w", err)
	}
	return nil
}

// sum16 adds up 16-bit words, without folding.
func sum16(b []byte) (sum uint32) {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	return sum
}

// ports are the ports of the flow that a SYN belongs to.
func (s *scanner) ports(n uint32) (src, dst uint16) {
	flow := int(n) % s.flows
	return uint16(scanSourceBase + flow/scanPorts), uint16(1 + flow%scanPorts)
}

// send sends the next SYN. If the kernel refuses it, it is not sent again.
func (s *scanner) send() error {
	src, dst := s.ports(s.next)
	b := s.seg[:]
	binary.BigEndian.PutUint16(b, src)
	binary.BigEndian.PutUint16(b[2:], dst)
	binary.BigEndian.PutUint32(b[4:], s.base+s.next)
	binary.BigEndian.PutUint32(b[8:], 0)
	b[12], b[13] = tcpHeader/4<<4, tcpSYN
	binary.BigEndian.PutUint16(b[14:], scanWindow)
	b[16], b[17], b[18], b[19] = 0, 0, 0, 0
	if !s.v6 {
		sum := s.pseud + sum16(b)
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		binary.BigEndian.PutUint16(b[16:], ^uint16(sum))
	}
	n := s.next
	s.next++
	s.got[n%scanWindowed/64] &^= 1 << (n % 64)
	switch _, err := unix.Write(s.fd, b); {
	case err == nil:
		s.res.Sent++
	case refusal(err):
		s.res.Refused++
	default:
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// scanWindowed is for how many SYNs an answer is still counted: more than any rate sends in scanPatience.
const scanWindowed = 1 << 17

// collect reads every answer that has come.
func (s *scanner) collect() error {
	for {
		n, err := unix.Read(s.fd, s.buf[:])
		switch {
		case err == nil:
			s.take(s.buf[:n])
		case err == unix.EAGAIN:
			return nil
		case !refusal(err):
			return fmt.Errorf("receive: %w", err)
		}
	}
}

// take counts a segment that answers one of the measured SYNs, once. A raw IPv4 socket includes the IP header.
func (s *scanner) take(b []byte) {
	if !s.v6 {
		if len(b) < 20 || len(b) < int(b[0]&15)*4 {
			return
		}
		b = b[int(b[0]&15)*4:]
	}
	if len(b) < tcpHeader || b[13]&tcpACK == 0 || b[13]&(tcpRST|tcpSYN) == 0 {
		return
	}
	n := binary.BigEndian.Uint32(b[8:]) - 1 - s.base
	if n < s.first || n >= s.next || s.next-n > scanWindowed {
		return
	}
	src, dst := s.ports(n)
	if binary.BigEndian.Uint16(b) != dst || binary.BigEndian.Uint16(b[2:]) != src || !s.got.set(n%scanWindowed) {
		return
	}
	s.res.Answered++
	if s.by.set(n % uint32(s.flows)) {
		s.res.FlowsAnswered++
	}
}
