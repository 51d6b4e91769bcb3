package udpbatch

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sender sends batches through a connected UDP socket. It is for one goroutine.
type Sender struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	four bool // IPv4
	// divides is whether the kernel divides runs on the way that the socket's datagrams take: until it refuses to.
	divides bool

	messages []message
	spare    []parts

	// Of the call under way.
	from, to int // messages
	taken    int // messages
	errno    unix.Errno
	once     func(fd uintptr)
	whenFree func(fd uintptr) bool
}

// message is struct mmsghdr.
type message struct {
	unix.Msghdr
	_ uint32
}

// parts is what a message points to, and how many datagrams it has.
type parts struct {
	iovec   unix.Iovec
	control [3]uint64 // space for a cmsghdr and its content, in the alignment of cmsghdr
	count   int
}

// NewSender makes the sender of a connected socket, which no one else writes to while Send is called.
func NewSender(conn *net.UDPConn) (*Sender, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	remote, ok := conn.RemoteAddr().(*net.UDPAddr)
	if !ok {
		return nil, errors.New("a socket that is not connected can't send batches")
	}
	s := &Sender{conn: conn, raw: raw, four: remote.AddrPort().Addr().Unmap().Is4(),
		messages: make([]message, MaxDatagrams), spare: make([]parts, MaxDatagrams)}
	s.once = func(fd uintptr) { s.call(fd) }
	s.whenFree = func(fd uintptr) bool { s.call(fd); return s.errno != unix.EAGAIN }
	err = raw.Control(func(fd uintptr) {
		// A kernel that does not know the option would ignore it in a message, and send a run as one datagram.
		_, unknown := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT)
		s.divides = unknown == nil
	})
	return s, errors.Join(err, s.fragment(!s.divides))
}

// fragment reports whether the kernel may fragment IPv4 datagrams that are longer than the MTU. Where it may, it
// leaves it to routers as well for all that are in a run; where it may not, it does not take datagrams that it knows
// to be too long. IPv6 routers never do.
func (s *Sender) fragment(may bool) error {
	if !s.four {
		return nil
	}
	how := unix.IP_PMTUDISC_DO
	if may {
		how = unix.IP_PMTUDISC_WANT
	}
	var err error
	if late := s.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER,
			how)
	}); late != nil {
		return late
	}
	return os.NewSyscallError("setsockopt IP_MTU_DISCOVER", err)
}

// Send sends the datagrams of b in order, and returns how many the kernel took: all of them, or err says why not the
// next. A send waits for room in the socket's buffer, for stall at most. An error that the socket had from a datagram
// before does not keep a batch back. Datagrams that are longer than the way's MTU, as far as it is known, leave in
// fragments.
func (s *Sender) Send(b *Batch, stall time.Duration) (n int, err error) {
	n, err = s.sendFrom(b, 0, s.divides, stall)
	if err == nil || !s.divides || !undivided(s.errno) {
		return n, err
	}
	first, tooLong := n, s.tooLong(len(b.Datagram(n)))
	if !tooLong && b.run(n) == 1 {
		return n, err
	}
	// The rest goes one by one, as it would without runs.
	if err := s.fragment(true); err != nil {
		return n, err
	}
	n, err = s.sendFrom(b, first, false, stall)
	if !tooLong && n > first {
		s.divides = false // the kernel took alone what it did not in a run, nor will it the next time
		return n, err
	}
	return n, errors.Join(err, s.fragment(false))
}

// tooLong reports whether a datagram of this many bytes was refused for its length.
func (s *Sender) tooLong(length int) bool {
	headers := 40 + 8
	if s.four {
		headers = 20 + 8
	}
	mtu := s.PathMTU()
	return s.errno == unix.EMSGSIZE || mtu > 0 && length+headers > mtu
}

// sendFrom sends the datagrams of b from the n-th on, and returns which is the first that was not sent.
func (s *Sender) sendFrom(b *Batch, n int, runs bool, stall time.Duration) (int, error) {
	for n < b.Len() {
		done, err := s.send(s.prepare(b, n, runs), stall)
		for i := range done {
			b.sent(n, s.spare[i].count)
			n += s.spare[i].count
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// undivided reports whether an error can mean that a run can't be divided, or a datagram not be fragmented: the way's
// MTU is smaller (EMSGSIZE; of runs EINVAL before Linux 6.14), IPsec or a device without checksums is on it (EIO), or
// the socket does without checksums (EINVAL).
func undivided(err unix.Errno) bool {
	switch err {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT, unix.EOPNOTSUPP:
		return true
	}
	return false
}

// prepare makes messages of the datagrams from n on, each of a run or of one, and returns how many.
func (s *Sender) prepare(b *Batch, n int, runs bool) (messages int) {
	for ; n < b.Len() && messages < len(s.messages); messages++ {
		m, p := &s.messages[messages], &s.spare[messages]
		length, count := len(b.Datagram(n)), 1
		if runs {
			count = b.run(n)
		}
		bytes := b.bytes[b.start(n):b.ends[n+count-1]]
		*m, p.count = message{}, count
		p.iovec.Base = &bytes[0]
		p.iovec.SetLen(len(bytes))
		m.Iov = &p.iovec
		m.SetIovlen(1)
		if count > 1 {
			p.divide(m, length)
		}
		n += count
	}
	return messages
}

// divide makes the kernel divide a message into datagrams of a length.
func (p *parts) divide(m *message, length int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&p.control))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Add(unsafe.Pointer(&p.control), unix.CmsgLen(0))) = uint16(length)
	m.Control = (*byte)(unsafe.Pointer(&p.control))
	m.SetControllen(unix.CmsgSpace(2))
}

// send sends the first messages, and returns how many were taken. Each is tried again once.
func (s *Sender) send(count int, stall time.Duration) (done int, err error) {
	for again := false; done < count; {
		s.from, s.to = done, count
		if err := s.attempt(stall); err != nil {
			return done, err
		}
		done += s.taken
		if s.errno != 0 && again {
			return done, &net.OpError{Op: "write", Net: "udp", Source: s.conn.LocalAddr(), Addr: s.conn.RemoteAddr(),
				Err: os.NewSyscallError("sendmmsg", s.errno)}
		}
		again = s.errno != 0
	}
	return done, nil
}

// attempt does a call, and waits for room before it if there is none. Without waiting, the runtime's poller has no part
// in it.
func (s *Sender) attempt(stall time.Duration) error {
	if err := s.raw.Control(s.once); err != nil || s.errno != unix.EAGAIN {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return err
	}
	err := s.raw.Write(s.whenFree)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// On a machine that did not let the process run for so long, the time was over before anything was tried.
		if late := s.raw.Control(s.once); late != nil || s.errno != unix.EAGAIN {
			return late
		}
	}
	return err
}

// call calls sendmmsg once.
func (s *Sender) call(fd uintptr) {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&s.messages[s.from])),
			uintptr(s.to-s.from), 0, 0, 0)
		if s.taken, s.errno = int(n), errno; errno != 0 {
			s.taken = 0
		}
		if errno != unix.EINTR {
			return
		}
	}
}

// PathMTU is what the kernel knows of the way to the other end, in bytes of IP packets; 0 when it knows nothing.
func (s *Sender) PathMTU() (n int) {
	_ = s.raw.Control(func(fd uintptr) {
		if s.four {
			n, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU)
		} else {
			n, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU)
		}
	})
	return n
}
