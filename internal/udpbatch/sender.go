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
	// divisible: runs are made of datagrams shorter than this, since the kernel would not divide longer ones; 0 = it divides none.
	divisible int

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
	control [3]uint64 // room for a cmsghdr and its content, in the alignment of cmsghdr
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
	s := &Sender{conn: conn, raw: raw, four: remote.AddrPort().Addr().Unmap().Is4(), messages: make([]message, MaxDatagrams), spare: make([]parts, MaxDatagrams)}
	s.once = func(fd uintptr) { s.call(fd) }
	s.whenFree = func(fd uintptr) bool { s.call(fd); return s.errno != unix.EAGAIN }
	err = raw.Control(func(fd uintptr) {
		// A kernel that does not know the option would ignore it in a message, and send a run as one datagram.
		if _, err := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT); err == nil {
			s.divisible = maxRunBytes
		}
	})
	return s, err
}

// Send sends the datagrams of b in order, and returns how many the kernel took: all of them, or err says why not the next. A send waits
// for room in the socket's buffer, for stall at most. An error that the socket had from a datagram before does not keep a batch back.
func (s *Sender) Send(b *Batch, stall time.Duration) (n int, err error) {
	refused := refusal{}
	for n < b.Len() {
		count := s.prepare(b, n, refused.end)
		done, err := s.send(count, stall)
		for i := range done {
			b.sent(n, s.spare[i].count)
			n += s.spare[i].count
		}
		if refused.err != 0 && n > refused.first {
			s.learn(b, refused)
			refused.err = 0
		}
		if err == nil {
			continue
		}
		if s.spare[done].count == 1 || !undivided(s.errno) {
			return n, err
		}
		refused = refusal{first: n, end: n + s.spare[done].count, err: s.errno}
	}
	return n, nil
}

// refusal is that the kernel did not take a run: its datagrams are tried one by one.
type refusal struct {
	first, end int // datagrams of the run
	err        unix.Errno
}

// undivided says whether an error can mean that a run can't be divided: the way's MTU is smaller (EMSGSIZE; EINVAL before Linux 6.14), IPsec or
// a device without checksums is on it (EIO), or the socket does without checksums (EINVAL).
func undivided(err unix.Errno) bool {
	switch err {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT, unix.EOPNOTSUPP:
		return true
	}
	return false
}

// learn notes what was refused in a run and taken alone, so that it is not tried again.
func (s *Sender) learn(b *Batch, r refusal) {
	length, headers := len(b.Datagram(r.first)), 40+8
	if s.four {
		headers = 20 + 8
	}
	if mtu := s.PathMTU(); r.err == unix.EMSGSIZE || mtu > 0 && length+headers > mtu {
		s.divisible = min(s.divisible, length)
		return
	}
	s.divisible = 0
}

// prepare makes messages of the datagrams from n on, and returns how many; those before single have messages of their own.
func (s *Sender) prepare(b *Batch, n, single int) (messages int) {
	for ; n < b.Len() && messages < len(s.messages); messages++ {
		m, p := &s.messages[messages], &s.spare[messages]
		length, count := len(b.Datagram(n)), 1
		if n >= single && length < s.divisible {
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

// divide has the kernel divide a message into datagrams of a length.
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
			return done, &net.OpError{Op: "write", Net: "udp", Source: s.conn.LocalAddr(), Addr: s.conn.RemoteAddr(), Err: os.NewSyscallError("sendmmsg", s.errno)}
		}
		again = s.errno != 0
	}
	return done, nil
}

// attempt does a call, and waits for room before it if there is none. Without waiting, the runtime's poller has no part in it.
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
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&s.messages[s.from])), uintptr(s.to-s.from), 0, 0, 0)
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
