package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errHalted ends a wait whose measurement is over.
var errHalted = errors.New("halted")

const (
	// connectPatience is time for three SYNs to be lost, or for a machine that stalls meanwhile.
	connectPatience = 10 * time.Second
	pollInterval    = 50 * time.Millisecond // how late a blocked end notices that it must stop
)

// sockaddr is the address in the form of system calls, and its family.
func sockaddr(a netip.AddrPort) (unix.Sockaddr, int, error) {
	ip := a.Addr().Unmap()
	switch {
	case ip.Is4():
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, unix.AF_INET, nil
	case ip.Is6() && ip.Zone() == "":
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}, unix.AF_INET6, nil
	}
	return nil, 0, fmt.Errorf("address %q: want an IPv4 or IPv6 address without a zone", a.Addr())
}

// boundTo is the local address of a socket.
func boundTo(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read the socket's address: %w", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("socket has an address of type %T", sa)
}

// open makes a socket whose blocking calls return now and then, so that they can be stopped.
func open(family, kind, proto int, wake time.Duration) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, fmt.Errorf("open socket: %w", err)
	}
	tv := unix.NsecToTimeval(wake.Nanoseconds())
	for _, opt := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, opt, &tv); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("set socket timeout: %w", err)
		}
	}
	return fd, nil
}

// again reports whether a system call must simply be repeated.
func again(err error) bool { return err == unix.EAGAIN || err == unix.EINTR }

// connect connects a blocking socket, and waits for the answer for the allowed time.
func connect(h *halt, fd int, to unix.Sockaddr) error {
	// The time is read only if the first attempt has to wait, because this runs once per transaction in crr.
	var deadline time.Time
	for {
		err := unix.Connect(fd, to)
		switch err {
		case nil, unix.EISCONN:
			return nil
		case unix.EINPROGRESS, unix.EALREADY, unix.EINTR:
		default:
			return fmt.Errorf("connect: %w", err)
		}
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(connectPatience)
		}
		if h.asked() {
			return errHalted
		}
		if now.After(deadline) {
			return fmt.Errorf("connect: no answer within %v", connectPatience)
		}
	}
}

// dial opens a TCP connection that sends small writes at once.
func dial(h *halt, to netip.AddrPort) (int, error) {
	sa, family, err := sockaddr(to)
	if err != nil {
		return -1, err
	}
	fd, err := open(family, unix.SOCK_STREAM, 0, pollInterval)
	if err != nil {
		return -1, err
	}
	if err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err == nil {
		err = connect(h, fd, sa)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// readFull fills the buffer. It calls stop whenever there was nothing to read for a while. If the other side has closed
// or reset the connection before the first byte, n is 0 and there is no error.
func readFull(fd int, buf []byte, stop func() bool) (n int, err error) {
	for n < len(buf) {
		k, err := unix.Read(fd, buf[n:])
		switch {
		case err == nil && k > 0:
			n += k
		case err == nil, err == unix.ECONNRESET && n == 0:
			if n > 0 {
				return n, fmt.Errorf("connection ended after %d of %d bytes", n, len(buf))
			}
			return 0, nil
		case again(err):
			if stop() {
				return n, errHalted
			}
		default:
			return n, fmt.Errorf("read: %w", err)
		}
	}
	return n, nil
}

// writeFull writes the whole buffer. It calls stop whenever nothing could be written for a while.
func writeFull(fd int, buf []byte, stop func() bool) error {
	for len(buf) > 0 {
		k, err := unix.Write(fd, buf)
		if err != nil && !again(err) {
			return fmt.Errorf("write: %w", err)
		}
		if err != nil && stop() {
			return errHalted
		}
		buf = buf[max(k, 0):]
	}
	return nil
}

// overflow is how many packets the socket has dropped because its buffer was full (SK_MEMINFO_DROPS,
// include/uapi/linux/sock_diag.h).
func overflow(fd int) (uint32, error) {
	const drops = 8 // the index of the count
	var info [drops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("read SO_MEMINFO: %w", errno)
	}
	return info[drops], nil
}
