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
	// divides says whether the kernel divides runs on the path of the socket's datagrams; it is true until the
	// kernel refuses.
	divides bool

	messages []message
	spare    []parts

	// For the present call.
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

// NewSender makes the sender of a connected socket, to which nobody else writes while Send runs.
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

// fragment sets whether the kernel may fragment IPv4 datagrams that are longer than the MTU. If it may, routers may
// fragment them too, including all datagrams of a run; if it may not, it refuses datagrams that it knows to be too
// long. IPv6 routers never fragment.
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

// Send sends the datagrams of b in order, and returns how many the kernel accepted: all of them, or err says why not
// the next one. It waits for space in the socket's buffer, for stall at most. A pending error of an earlier datagram
// does not hold back a batch. Datagrams longer than the path's MTU, as far as it is known, leave in fragments.
func (s *Sender) Send(b *Batch, stall time.Duration) (n int, err error) {
	n, err = s.sendFrom(b, 0, s.divides, stall)
	if err == nil || !s.divides || !undivided(s.errno) {
		return n, err
	}
	first, tooLong := n, s.tooLong(len(b.Datagram(n)))
	if !tooLong && b.run(n) == 1 {
		return n, err
	}
	// Send the rest one by one, without runs.
	if err := s.fragment(true); err != nil {
		return n, err
	}
	n, err = s.sendFrom(b, first, false, stall)
	if !tooLong && n > first {
		s.divides = false // the kernel refused a run but accepted its datagram alone: it would do so again
		return n, err
	}
	return n, errors.Join(err, s.fragment(false))
}

// tooLong reports whether a datagram of this many bytes was refused because of its length.
func (s *Sender) tooLong(length int) bool {
	headers := 40 + 8
	if s.four {
		headers = 20 + 8
	}
	mtu := s.PathMTU()
	return s.errno == unix.EMSGSIZE || mtu > 0 && length+headers > mtu
}

// sendFrom sends the datagrams of b from the n-th on, and returns the index of the first one that was not sent.
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

// undivided reports whether an error can mean that a run can't be divided, or a datagram not be fragmented: the path's
// MTU is smaller (EMSGSIZE; for runs EINVAL before Linux 6.14), the path contains IPsec or a device without checksums
// (EIO), or the socket sends without checksums (EINVAL).
func undivided(err unix.Errno) bool {
	switch err {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT, unix.EOPNOTSUPP:
		return true
	}
	return false
}

// prepare makes messages from the datagrams from n on, one per run or datagram, and returns how many.
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

// send sends the first count messages, and returns how many were accepted. Each is tried again once.
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

// attempt makes one call, and waits for space before it if there is none. If it need not wait, it does not use the
// runtime's poller.
func (s *Sender) attempt(stall time.Duration) error {
	if err := s.raw.Control(s.once); err != nil || s.errno != unix.EAGAIN {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return err
	}
	err := s.raw.Write(s.whenFree)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// On a machine that did not let the process run for so long, the time was up before anything was tried.
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

// PathMTU is the MTU of the path to the other end as the kernel knows it, in bytes of IP packets; 0 if it does not.
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
