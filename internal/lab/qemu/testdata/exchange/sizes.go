package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// parts is how many datagrams one large frame is cut into.
const parts = 12

// sizes sends one datagram of each size, and then one large frame that the kernel or its card cuts into datagrams of
// cut bytes; 0 leaves that out. Each is answered by its complement.
func sizes(addr string, cut int, list string) error {
	c, err := dialDatagrams(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for i, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err == nil {
			err = c.answered(random(n, int64(i)+11), c.send)
		}
		if err != nil {
			return fmt.Errorf("datagram of %s bytes: %w", text, err)
		}
	}
	if cut > 0 {
		err = c.answered(random(parts*cut, 7), func(b []byte) error {
			_, _, err := c.WriteMsgUDP(b, segmentsOf(uint16(cut)), nil)
			return err
		})
		if err != nil {
			return fmt.Errorf("%d datagrams of %d bytes in one frame: %w", parts, cut, err)
		}
	}
	fmt.Printf("datagrams of %s bytes, repeated %d\n", list, c.repeated)
	return nil
}

// learn finds that packets of room bytes cross, and that the path's MTU is learned from the error for a longer one.
// headers are those of IP and UDP together.
func learn(addr string, room, headers int) error {
	c, err := dialDatagrams(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.option(unix.IP_MTU_DISCOVER, unix.IPV6_MTU_DISCOVER, unix.IP_PMTUDISC_DO); err != nil {
		return err
	}
	fits := random(room-headers, 5)
	if err := c.answered(fits, c.send); err != nil {
		return fmt.Errorf("a packet of %d bytes: %w", room, err)
	}
	long, learned := append(bytes.Clone(fits), 1), 0
	for end := time.Now().Add(patience); learned != room; time.Sleep(20 * time.Millisecond) {
		if err := c.send(long); err != nil && !errors.Is(err, syscall.EMSGSIZE) {
			return err
		}
		if learned, err = c.mtu(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("the path's MTU is %d here, and packets of %d bytes fit", learned, room)
		}
	}
	if _, err := c.Write(long); !errors.Is(err, syscall.EMSGSIZE) {
		return fmt.Errorf("a packet that is one byte too long: %w", err)
	}
	for _, less := range []int{0, 1} {
		if err := c.answered(fits[less:], c.send); err != nil {
			return fmt.Errorf("a packet of %d bytes after that: %w", room-less, err)
		}
	}
	fmt.Printf("packets of %d bytes fit\n", room)
	return nil
}

// datagrams is a socket whose datagrams are answered by their complements.
type datagrams struct {
	*net.UDPConn
	ipv6     bool
	repeated int
}

func dialDatagrams(addr string) (*datagrams, error) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return nil, err
	}
	return &datagrams{UDPConn: c.(*net.UDPConn), ipv6: strings.HasPrefix(addr, "[")}, nil
}

// send sends a datagram. The error that came for an earlier one is told once, instead of sending.
func (c *datagrams) send(b []byte) error {
	_, err := c.Write(b)
	if errors.Is(err, syscall.EMSGSIZE) {
		_, err = c.Write(b)
	}
	return err
}

// answered sends until the complement of all bytes has come back, in one datagram or several in their order.
func (c *datagrams) answered(sent []byte, send func([]byte) error) error {
	want, got, buf := bytes.Clone(sent), []byte{}, make([]byte, 65536)
	invert(want)
	for tries := 0; ; tries++ {
		if tries == 6 {
			return fmt.Errorf("%d of %d bytes came back, or others", len(got), len(want))
		}
		if err := send(sent); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(patience / 6)); err != nil {
			return err
		}
		got = got[:0]
		for len(got) < len(want) {
			n, err := c.Read(buf)
			if err != nil {
				break // late, or refused while the server starts: it is sent again
			}
			if part := want[len(got):]; n <= len(part) && bytes.Equal(buf[:n], part[:n]) {
				got = append(got, buf[:n]...)
			}
		}
		if len(got) == len(want) {
			return nil
		}
		c.repeated++
		time.Sleep(50 * time.Millisecond)
	}
}

// option sets an option of the socket's family.
func (c *datagrams) option(ipv4, ipv6, value int) error {
	return c.control(func(fd int) error {
		if c.ipv6 {
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, ipv6, value)
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipv4, value)
	})
}

// mtu is that of the path, as the kernel knows it.
func (c *datagrams) mtu() (mtu int, err error) {
	return mtu, c.control(func(fd int) (err error) {
		if c.ipv6 {
			mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
		} else {
			mtu, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
		}
		return err
	})
}

func (c *datagrams) control(do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	return errors.Join(raw.Control(func(fd uintptr) { inner = do(int(fd)) }), inner)
}

// segmentsOf is the control message that asks the kernel for datagrams of n bytes (UDP_SEGMENT).
func segmentsOf(n uint16) []byte {
	b := make([]byte, unix.CmsgSpace(2))
	head := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	head.Level, head.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	head.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], n)
	return b
}
