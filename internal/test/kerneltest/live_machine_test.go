package kerneltest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/plan"
)

// machine is an owner with an IP stack: a guest's namespace, for a tap joined to it by a user-space program that
// carries frames with their virtio-net headers, as a virtual machine monitor does.
type machine struct {
	*end
	number  int    // last octet of its addresses
	largest uint64 // for a tap: the longest frame it received, bytes
	wrong   atomic.Pointer[error]
}

// The offloads a tap's owner can announce by TUNSETOFFLOAD.
const (
	tapOffload   = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	tapNoOffload = 0
)

// machine gives the owner of a port the addresses 10.9.0.N and fd00::N, N being the number in the port's name.
func (h *host) machine(name string, offload int) *machine {
	h.t.Helper()
	m := &machine{end: h.ends[name], number: int(word(name)[5])}
	if m.tap {
		m.ns = quietNS(h.t, name)
		m.join(h, m.ns, "eth0", plan.MAC(word(name)), offload)
	}
	h.in(m.ns, func() error {
		return m.addressesOn("eth0")
	})
	return m
}

func (m *machine) addressesOn(device string) error {
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/disable_ipv6", []byte("0"), 0); err != nil {
		return err
	}
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	for _, format := range []string{"10.9.0.%d/24", "fd00::%d/64"} {
		addr, err := netlink.ParseAddr(fmt.Sprintf(format, m.number))
		if err != nil {
			return err
		}
		addr.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(l, addr); err != nil {
			return err
		}
	}
	return nil
}

// join makes the guest's own tap in its namespace and carries frames between the two.
func (m *machine) join(h *host, ns *netns.NS, device string, mac plan.MAC, offload int) {
	h.t.Helper()
	var inner int
	h.in(ns, func() (err error) {
		if inner, err = openTap(device); err != nil {
			return err
		}
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetHardwareAddr(l, mac[:]), netlink.LinkSetUp(l))
	})
	outer, err := unix.Dup(m.sock)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, fd := range []int{inner, outer} {
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
			h.t.Fatal(err)
		}
	}
	guest, port := os.NewFile(uintptr(inner), "guest's tap"), os.NewFile(uintptr(outer), "port's tap")
	var carriers sync.WaitGroup
	carriers.Go(func() { m.carry(port, guest, m.receive) })
	carriers.Go(func() { m.carry(guest, port, func([]byte) error { return nil }) })
	h.t.Cleanup(func() {
		if err := errors.Join(guest.Close(), port.Close()); err != nil {
			h.t.Error(err)
		}
		carriers.Wait()
		if wrong := m.wrong.Load(); wrong != nil {
			h.t.Error(*wrong)
		}
	})
}

// carry passes frames on until a descriptor is closed.
func (m *machine) carry(from, to *os.File, look func([]byte) error) {
	buf := make([]byte, vnetHeader+1<<17)
	for {
		n, err := from.Read(buf)
		if err == nil {
			err = look(buf[:n])
		}
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			err = fmt.Errorf("%s to %s: %w", from.Name(), to.Name(), err)
			m.wrong.Store(&err)
			return
		}
	}
}

// receive looks at a frame with its virtio-net header: unless the header leaves the checksum to the owner, it must be
// right.
func (m *machine) receive(b []byte) error {
	if n := uint64(len(b) - vnetHeader); n > atomic.LoadUint64(&m.largest) {
		atomic.StoreUint64(&m.largest, n)
	}
	const needsChecksum = 1
	if b[0]&needsChecksum != 0 {
		return nil
	}
	return checkFrame(b[vnetHeader:])
}

// checkFrame verifies the checksum of a TCP or UDP packet.
func checkFrame(f []byte) error {
	for binary.BigEndian.Uint16(f[12:]) == 0x8100 {
		f = append(bytes.Clone(f[:12]), f[16:]...)
	}
	var pseudo, body []byte
	var protocol byte
	switch binary.BigEndian.Uint16(f[12:]) {
	case 0x0800:
		ip := f[14:]
		head, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
		if onesSum(ip[:head]) != 0xffff {
			return fmt.Errorf("IPv4 header checksum of %x is wrong", f)
		}
		pseudo, body, protocol = ip[12:20], ip[head:total], ip[9]
	case 0x86dd:
		ip := f[14:]
		pseudo, body, protocol = ip[8:40], ip[40:40+int(binary.BigEndian.Uint16(ip[4:]))], ip[6]
	}
	if protocol != unix.IPPROTO_TCP && protocol != unix.IPPROTO_UDP {
		return nil
	}
	all := append([]byte{0, protocol, byte(len(body) >> 8), byte(len(body))}, pseudo...)
	if onesSum(append(all, body...)) != 0xffff {
		return fmt.Errorf("checksum of protocol %d, %d bytes, is wrong: frame begins %x", protocol, len(body),
			f[:min(len(f), 80)])
	}
	return nil
}

// onesSum is the sum of RFC 1071.
func onesSum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// forget drops what was received so far; longest is the length of the longest frame received since.
func (m *machine) forget() {
	m.longest()
	atomic.StoreUint64(&m.largest, 0)
}

func (m *machine) longest() int {
	if m.tap {
		return int(atomic.LoadUint64(&m.largest))
	}
	most := 0
	for {
		n, _, err := unix.Recvfrom(m.sock, nil, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		if err != nil {
			return most // EAGAIN: that was all
		}
		most = max(most, n)
	}
}
