package export

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"heddle/internal/flow/udpbatch"
)

// socket is a connected UDP socket that reports which of its messages were refused.
type socket struct {
	conn   *net.UDPConn
	raw    syscall.RawConn
	sender *udpbatch.Sender
	remote netip.AddrPort
	local  netip.AddrPort
	oob    []byte
	quoted []byte
}

// dial opens a socket to a collector, with its own source port. An IPv4 collector sees the source address if that is
// valid.
func dial(remote netip.AddrPort, source netip.Addr) (*socket, error) {
	network := "udp6"
	if remote.Addr().Is4() {
		network = "udp4"
	}
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return control(c, remote.Addr().Is4(), false)
	}}
	if source.IsValid() && remote.Addr().Is4() {
		d.LocalAddr = &net.UDPAddr{IP: source.AsSlice()}
	}
	conn, err := d.DialContext(context.Background(), network, remote.String())
	if errors.Is(err, unix.EADDRNOTAVAIL) && d.LocalAddr != nil {
		// The address is not the host's: every host of a switch may send from the same one.
		d.Control = func(_, _ string, c syscall.RawConn) error { return control(c, true, true) }
		conn, err = d.DialContext(context.Background(), network, remote.String())
	}
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn.(*net.UDPConn), remote: remote, oob: make([]byte, 512), quoted: make([]byte, 2048)}
	s.local = s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	if s.raw, err = s.conn.SyscallConn(); err == nil {
		s.sender, err = udpbatch.NewSender(s.conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// control sets the options that must be set before the socket is bound. A foreign source address needs CAP_NET_ADMIN.
func control(c syscall.RawConn, four, foreign bool) error {
	var err error
	set := func(fd uintptr) {
		if four {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		}
		if foreign && err == nil {
			if err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1); err != nil {
				err = fmt.Errorf("send from an address that the host does not have, which needs CAP_NET_ADMIN: %w", err)
			}
		}
	}
	if late := c.Control(set); late != nil {
		return late
	}
	return err
}

// refusal reports that a message did not arrive.
type refusal struct {
	sequence uint32 // of the message; known only with exact
	exact    bool
	err      error
}

// refused takes the next refusal out of the socket's error queue: ICMP errors of routers and of the collector's host,
// which quote the beginning of a message. If the messages of one piece are refused on this host or between its network
// namespaces, the first of them is quoted.
func (s *socket) refused() (r refusal, ok bool) {
	_ = s.raw.Control(func(fd uintptr) {
		for {
			n, oobn, _, _, err := unix.Recvmsg(int(fd), s.quoted, s.oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			errno := errorOf(s.oob[:oobn])
			if errno == 0 {
				continue
			}
			r, ok = refusal{err: errno}, true
			if n >= 12 {
				r.sequence, r.exact = binary.BigEndian.Uint32(s.quoted[8:]), true
			}
			return
		}
	})
	return r, ok
}

// errorOf reads struct sock_extended_err. It ignores errors of this host itself, which the send call has already
// returned.
func errorOf(oob []byte) unix.Errno {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		known := m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_RECVERR || m.Header.Level == unix.SOL_IPV6 &&
			m.Header.Type == unix.IPV6_RECVERR
		if known && len(m.Data) >= int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			if m.Data[4] == unix.SO_EE_ORIGIN_LOCAL {
				return 0
			}
			return unix.Errno(binary.NativeEndian.Uint32(m.Data))
		}
	}
	return 0
}

func (s *socket) close() { _ = s.conn.Close() }
