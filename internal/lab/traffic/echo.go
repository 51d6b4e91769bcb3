package traffic

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Echo is the outcome of pinging a host. Replies later than a second after the last request are not seen.
type Echo struct {
	Requests uint64 `json:"requests"`
	// Replies counts all of them, Answered the requests that got at least one.
	Replies  uint64 `json:"replies"`
	Answered uint64 `json:"answered"`
	// RepliesPerPing is the mean over all requests but the last: the ping program ends with the first reply to the
	// last one, so numbers from its output leave the last out too. With one request, it is that one's.
	RepliesPerPing float64 `json:"replies_per_ping"`
	// RTT is the time to the first reply of each request.
	RTT Latency `json:"rtt"`
	// Duplicates is how long after the first reply the second, the third and further ones came, one entry each.
	Duplicates []Latency `json:"duplicates,omitempty"`
	CPUSeconds float64   `json:"cpu_s"`
}

const (
	echoHeader = 8 // bytes: type, code, checksum, identifier, sequence number (RFC 792; RFC 4443, section 4.1)
	// echoPatience is how long to wait for replies after the last request.
	echoPatience = time.Second
	echoQuiet    = 200 * time.Millisecond // a completely answered measurement ends early after this pause
)

// pinger sends requests of one measurement and collects their replies.
type pinger struct {
	fd      int
	v6      bool
	id      uint16
	request []byte
	pings   []pinged // by sequence number, of warm-up and interval
	heard   time.Time
	buf     []byte
}

type pinged struct {
	sent    time.Time
	replies uint64
	rtt     time.Duration
	later   []time.Duration // the further replies, after the first; maxLater of them
}

// maxLater is of how many further replies to a request the time is kept.
const maxLater = 15

// ping sends requests at the load's rate and counts the replies to each.
func ping(h *halt, load Load, to netip.Addr) (*Echo, error) {
	p, err := newPinger(load, to)
	if err != nil {
		return nil, err
	}
	defer unix.Close(p.fd)
	c := newClock(h, load)
	every := time.Duration(float64(time.Second) / load.Rate)
	first := 0 // sequence number of the first measured request
	for due := c.start; ; due = due.Add(every) {
		if err := p.collect(h, due); err != nil {
			return nil, err
		}
		if c.step(time.Now()) && c.phase == measuring {
			first = len(p.pings)
		}
		if c.phase == over || len(p.pings) > maxEchoRequests {
			break
		}
		if err := p.send(); err != nil {
			return nil, err
		}
	}
	if load.Duration == 0 {
		h = &halt{} // a halt is this measurement's normal end: it still waits for the last replies
	}
	if err := p.drain(h, first); err != nil {
		return nil, err
	}
	if len(p.pings) == first {
		return nil, fmt.Errorf("no request was sent in the measured interval; at %g per second it is too short",
			load.Rate)
	}
	e := summarise(p.pings[first:])
	e.CPUSeconds = c.cpu
	return &e, nil
}

// pingers distinguishes the measurements of one process.
var pingers atomic.Uint32

func newPinger(load Load, to netip.Addr) (*pinger, error) {
	sa, family, err := sockaddr(netip.AddrPortFrom(to, 0))
	if err != nil {
		return nil, err
	}
	p := &pinger{
		v6: family == unix.AF_INET6, id: uint16(os.Getpid())*31 + uint16(pingers.Add(1)),
		request: make([]byte, echoHeader+load.Size), buf: make([]byte, 1<<16),
	}
	proto := unix.IPPROTO_ICMP
	if p.v6 {
		proto = unix.IPPROTO_ICMPV6
	}
	if p.fd, err = open(family, unix.SOCK_RAW, proto, pollInterval); err != nil {
		return nil, fmt.Errorf("%w (raw ICMP sockets need root or CAP_NET_RAW)", err)
	}
	// A connected raw socket only receives from its peer.
	if err := unix.Connect(p.fd, sa); err != nil {
		unix.Close(p.fd)
		return nil, fmt.Errorf("connect: %w", err)
	}
	return p, nil
}

// send sends the next request. If the kernel refuses it, it counts as a request without reply.
func (p *pinger) send() error {
	p.request[0] = 8
	if p.v6 {
		p.request[0] = 128
	}
	p.request[2], p.request[3] = 0, 0
	binary.BigEndian.PutUint16(p.request[4:], p.id)
	binary.BigEndian.PutUint16(p.request[6:], uint16(len(p.pings)))
	if !p.v6 { // the kernel does it for IPv6 (RFC 3542, section 3.1)
		binary.BigEndian.PutUint16(p.request[2:], Checksum(p.request))
	}
	p.pings = append(p.pings, pinged{sent: time.Now()})
	if _, err := unix.Write(p.fd, p.request); err != nil && !refusal(err) {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// collect reads replies until the given time.
func (p *pinger) collect(h *halt, until time.Time) error {
	for !h.asked() {
		left := time.Until(until)
		if left <= 0 {
			return nil
		}
		ts := unix.NsecToTimespec(int64(min(left, pollInterval)))
		n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, &ts, nil)
		if err != nil && !again(err) {
			return fmt.Errorf("wait for replies: %w", err)
		}
		if n > 0 {
			if err := p.receive(); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain waits for replies that are still on their way: until all have come, none has come for a while, or patience
// ends.
func (p *pinger) drain(h *halt, first int) error {
	end := time.Now().Add(echoPatience)
	for now := time.Now(); now.Before(end) && !h.asked(); now = time.Now() {
		if summarise(p.pings[first:]).Answered == uint64(len(p.pings)-first) && now.Sub(p.heard) > echoQuiet {
			return nil
		}
		if err := p.collect(h, now.Add(pollInterval)); err != nil {
			return err
		}
	}
	return nil
}

func (p *pinger) receive() error {
	n, err := unix.Read(p.fd, p.buf)
	if err != nil {
		if refusal(err) {
			return nil
		}
		return fmt.Errorf("receive: %w", err)
	}
	seq, ok := p.reply(p.buf[:n])
	if !ok || int(seq) >= len(p.pings) {
		return nil
	}
	p.heard = time.Now()
	ping := &p.pings[seq]
	if ping.replies++; ping.replies == 1 {
		ping.rtt = p.heard.Sub(ping.sent)
	} else if len(ping.later) < maxLater {
		ping.later = append(ping.later, p.heard.Sub(ping.sent)-ping.rtt)
	}
	return nil
}

// reply finds the sequence number in a reply to us. A raw IPv4 socket includes the IP header.
func (p *pinger) reply(b []byte) (seq uint16, ok bool) {
	kind := byte(129)
	if !p.v6 {
		kind = 0
		if len(b) < 20 || len(b) < int(b[0]&15)*4 {
			return 0, false
		}
		b = b[int(b[0]&15)*4:]
	}
	if len(b) < echoHeader || b[0] != kind || b[1] != 0 || binary.BigEndian.Uint16(b[4:]) != p.id {
		return 0, false
	}
	return binary.BigEndian.Uint16(b[6:]), true
}

func summarise(pings []pinged) Echo {
	e := Echo{Requests: uint64(len(pings))}
	var rtt histogram
	var later [maxLater]histogram
	most := 0
	for _, p := range pings {
		most = max(most, len(p.later))
		for i, d := range p.later {
			later[i].add(d)
		}
		e.Replies += p.replies
		if p.replies > 0 {
			e.Answered++
			rtt.add(p.rtt)
		}
	}
	e.RTT = rtt.latency()
	for i := range most {
		e.Duplicates = append(e.Duplicates, later[i].latency())
	}
	switch n := len(pings); n {
	case 0:
	case 1:
		e.RepliesPerPing = float64(e.Replies)
	default:
		e.RepliesPerPing = float64(e.Replies-pings[n-1].replies) / float64(n-1)
	}
	return e
}

// Checksum is the internet checksum (RFC 1071).
func Checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
