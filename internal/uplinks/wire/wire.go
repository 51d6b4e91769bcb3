package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"heddle/internal/abi"
)

const (
	// maxFrame is the longest frame that is received whole, in bytes.
	maxFrame = 2048
	// header is the length of an Ethernet header without a tag.
	header = 14
)

// Frame is one received frame, without its VLAN tag: the kernel removes the tag before it finds the socket of an
// EtherType. (Only a socket for all types would see it, at the cost of every frame of the device.) A protocol that
// needs to know the VLAN has it in its payload.
type Frame struct {
	Destination, Source [6]byte
	EtherType           uint16
	Payload             []byte // the bytes after the EtherType; valid until the next Receive
	Tagged              bool   // it arrived with a VLAN tag, as far as the kernel still shows it
}

// Conn is a socket on one device for the frames that its Listen selects. Send may be called from any goroutine, Receive
// and Hear from one each.
type Conn struct {
	file  *os.File
	index int
	heard atomic.Pointer[Listen]
	buf   [maxFrame]byte
}

// Open opens a socket on the device with that ifindex in the calling thread's network namespace, and makes the device
// receive frames to the multicast groups of listen.
func Open(ifindex uint32, listen Listen) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err)
	}
	if err := prepare(fd, ifindex, listen); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket on device %d: %w", ifindex, err), unix.Close(fd))
	}
	c := &Conn{file: os.NewFile(uintptr(fd), "packet socket"), index: int(ifindex)}
	c.heard.Store(&listen)
	return c, nil
}

func prepare(fd int, ifindex uint32, listen Listen) error {
	for _, g := range listen.Groups {
		if !multicast(g) {
			continue
		}
		m := unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_MULTICAST, Alen: 6}
		copy(m.Address[:], g[:])
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return fmt.Errorf("take in multicast %x: %w", g, err)
		}
	}
	// On an uplink that carries the host's own traffic the switch would otherwise look the frame up.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, abi.MarkAgent); err != nil {
		return fmt.Errorf("mark what the agent sends (needs CAP_NET_ADMIN): %w", err)
	}
	protocol := listen.protocol()
	if protocol != 0 { // before the first frame can come
		if err := listen.attach(fd, ifindex); err != nil {
			return err
		}
	}
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8,
		Ifindex: int(ifindex)})
}

func (l Listen) attach(fd int, ifindex uint32) error {
	p, err := l.filter(ifindex)
	if err == nil {
		err = attach(fd, p)
	}
	if err != nil {
		return fmt.Errorf("filter what the socket receives: %w", err)
	}
	return nil
}

// Hear changes which frames of the socket's EtherType and groups are received, at one instant.
func (c *Conn) Hear(listen Listen) error {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	err = raw.Control(func(fd uintptr) { ferr = listen.attach(int(fd), uint32(c.index)) })
	if err = errors.Join(err, ferr); err == nil {
		c.heard.Store(&listen)
	}
	return err
}

// Close also ends a waiting Receive, with an error.
func (c *Conn) Close() error { return c.file.Close() }

// Bound reports whether the device is still the one that Open found. When a device disappears or leaves the namespace,
// the kernel unbinds its sockets for good: another device with the same index is not heard.
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

// Send sends a whole frame: destination, source, an 802.1Q tag if asked for, type, payload; padded to 60 bytes.
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

// Receive waits for the next accepted frame that the device receives; frames that this host sends are left out.
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
		if err != nil || rerr != nil {
			return nil, errors.Join(err, rerr)
		}
		if f, ok := c.read(c.buf[:n], from); ok && c.heard.Load().Takes(f) {
			return f, nil
		}
	}
}

// read decodes a frame; false for a frame that this host sends, or that is malformed.
func (c *Conn) read(b []byte, from unix.Sockaddr) (*Frame, bool) {
	ll, ok := from.(*unix.SockaddrLinklayer)
	if len(b) < header || !ok || ll.Pkttype == unix.PACKET_OUTGOING {
		return nil, false
	}
	return &Frame{Destination: [6]byte(b), Source: [6]byte(b[6:]), EtherType: binary.BigEndian.Uint16(b[12:]),
		Payload: b[header:],
		Tagged:  ll.Pkttype == unix.PACKET_OTHERHOST || ll.Ifindex != c.index}, true
}
