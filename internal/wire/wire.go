// Package wire sends and receives single Ethernet frames of the agent's own protocols on a device: announcements, beacons,
// LACP and LLDP. The switch's program does not see what is sent here; what is received arrives beside it.
package wire

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"heddle/internal/abi"
)

// maxFrame is the longest frame that is received whole, in bytes.
const maxFrame = 2048

// Frame is one received frame, without its VLAN tag: the kernel takes that off before it finds the socket of an EtherType. (Only
// a socket for all types would see it, and cost every frame of the device.) A protocol that needs to know the VLAN carries it.
type Frame struct {
	Destination, Source [6]byte
	Payload             []byte // what follows the EtherType; valid until the next Receive
}

// Conn is a socket for one EtherType on one device. Send may be called from any goroutine, Receive from one.
type Conn struct {
	file  *os.File
	index int
	buf   [maxFrame]byte
}

// Open opens a socket for frames of the EtherType on the device of that index in the calling thread's network namespace, and has
// the device take in frames to the multicast addresses in groups. Type 0 only sends.
func Open(ifindex uint32, etherType uint16, groups ...[6]byte) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err)
	}
	if err := prepare(fd, int(ifindex), etherType, groups); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket on device %d: %w", ifindex, err), unix.Close(fd))
	}
	return &Conn{file: os.NewFile(uintptr(fd), "packet socket"), index: int(ifindex)}, nil
}

func prepare(fd, ifindex int, etherType uint16, groups [][6]byte) error {
	for _, g := range groups {
		m := unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_MULTICAST, Alen: 6}
		copy(m.Address[:], g[:])
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return fmt.Errorf("take in multicast %x: %w", g, err)
		}
	}
	// An uplink that carries the host's own traffic would have the switch look the frame up.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, abi.MarkAgent); err != nil {
		return fmt.Errorf("mark what the agent sends (needs CAP_NET_ADMIN): %w", err)
	}
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: etherType<<8 | etherType>>8, Ifindex: ifindex})
}

// Close ends a Receive that waits, with an error.
func (c *Conn) Close() error { return c.file.Close() }

// Bound says whether the device is still the one that Open found. The kernel takes a socket off a device that goes or leaves the
// namespace, for good: another device under the same index is not heard.
func (c *Conn) Bound() bool {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return false
	}
	bound := false
	err = raw.Control(func(fd uintptr) {
		at, err := unix.Getsockname(int(fd))
		ll, ok := at.(*unix.SockaddrLinklayer)
		bound = err == nil && ok && ll.Ifindex == c.index
	})
	return err == nil && bound
}

// Send sends a whole frame: destination, source, an 802.1Q tag where there is to be one, type, payload; padded to 60 bytes.
func (c *Conn) Send(frame []byte) error {
	if len(frame) < 60 {
		frame = append(append(make([]byte, 0, 60), frame...), make([]byte, 60-len(frame))...)
	}
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Ifindex: c.index}
	var serr error
	err = raw.Write(func(fd uintptr) bool {
		serr = unix.Sendto(int(fd), frame, 0, to)
		return !errors.Is(serr, unix.EAGAIN) && !errors.Is(serr, unix.EINTR)
	})
	return errors.Join(err, serr)
}

// Receive waits for the next frame that came in on the device; what this host sends is left out.
func (c *Conn) Receive() (*Frame, error) {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	for {
		var n int
		var from unix.Sockaddr
		var rerr error
		err := raw.Read(func(fd uintptr) bool {
			n, from, rerr = unix.Recvfrom(int(fd), c.buf[:], 0)
			return !errors.Is(rerr, unix.EAGAIN) && !errors.Is(rerr, unix.EINTR)
		})
		switch ll, ok := from.(*unix.SockaddrLinklayer); {
		case err != nil || rerr != nil:
			return nil, errors.Join(err, rerr)
		case n < 14 || ok && ll.Pkttype == unix.PACKET_OUTGOING:
			continue
		}
		b := c.buf[:n]
		return &Frame{Destination: [6]byte(b), Source: [6]byte(b[6:]), Payload: b[14:]}, nil
	}
}
