package kerneltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// patience is how long a frame or a counter that must come is awaited.
const patience = 2 * time.Minute

// end is a port seen from its owner: a raw socket on the guest's end of a veth, or a tap's descriptor.
type end struct {
	t     *testing.T
	ns    *netns.NS // the owner's; nil for a tap
	tap   bool
	sock  int
	index int    // of the device at the host
	back  int    // a raw socket on that device: what is sent there goes to the owner, past the switch
	room  []byte // for the frame that is being received
}

// hostSide brings the device at the host up and finds it.
func (e *end) hostSide(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	e.index = l.Attrs().Index
	e.back, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Bind(e.back, &unix.SockaddrLinklayer{Ifindex: e.index})
}

func (e *end) close() {
	for _, fd := range []int{e.sock, e.back} {
		if fd > 0 {
			if err := unix.Close(fd); err != nil {
				e.t.Error(err)
			}
		}
	}
}

// packetSocket receives every frame that arrives on a device, and tells the tags beside them.
func packetSocket(index int) (int, error) {
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	timeout := unix.NsecToTimeval(int64(patience))
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}),
	} {
		if err != nil {
			return 0, err
		}
	}
	return fd, nil
}

// vnetHeader is the length of the virtio-net header before each frame of a tap.
const vnetHeader = 10

// openTap makes a tap as a virtual machine monitor does.
func openTap(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	return fd, unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
}

// captured is a frame as its receiver gets it, its tags in the bytes.
type captured struct {
	frame []byte
	kind  uint8 // unix.PACKET_HOST …: what the receiver's stack takes it for; a tap has none
}

// next awaits the next frame. It keeps no more than the frame's bytes: tests hold many thousands of frames.
func (e *end) next() (captured, error) {
	if e.room == nil {
		e.room = make([]byte, 1<<16+vnetHeader)
	}
	if e.tap {
		n, err := readTap(e.sock, e.room)
		if err != nil {
			return captured{}, err
		}
		return captured{frame: bytes.Clone(e.room[vnetHeader:n])}, nil
	}
	var oob [64]byte
	n, oobn, _, from, err := unix.Recvmsg(e.sock, e.room, oob[:], 0)
	for err == unix.EINTR { // by a signal of Go's scheduler: calls with a timeout are not restarted (signal(7))
		n, oobn, _, from, err = unix.Recvmsg(e.sock, e.room, oob[:], 0)
	}
	if err != nil {
		return captured{}, err
	}
	f, err := withTag(bytes.Clone(e.room[:n]), oob[:oobn])
	return captured{f, from.(*unix.SockaddrLinklayer).Pkttype}, err
}

func readTap(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EAGAIN && err != unix.EINTR {
			return n, err
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if err == nil && ready == 0 {
			err = unix.ETIMEDOUT
		}
		if err != nil && err != unix.EINTR {
			return 0, err
		}
	}
}

// withTag puts the tag that the kernel holds beside the frame into it.
func withTag(f, oob []byte) ([]byte, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA {
			continue
		}
		aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
		if aux.Status&unix.TP_STATUS_VLAN_VALID == 0 {
			return f, nil
		}
		tag := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, aux.Vlan_tpid), aux.Vlan_tci)
		return bytes.Join([][]byte{f[:12], tag, f[12:]}, nil), nil
	}
	return nil, fmt.Errorf("the kernel told nothing beside the frame")
}

// inject sends a frame as the owner. A machine that is too busy to empty the queue between the two ends of a veth takes
// it a little later.
func (e *end) inject(f []byte) error {
	if e.tap {
		_, err := unix.Write(e.sock, append(make([]byte, vnetHeader), f...))
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := unix.Write(e.sock, f)
		if err != unix.ENOBUFS || time.Now().After(deadline) {
			return err
		}
	}
}

// What is received holds no more memory than its bytes need: a stream's tests keep many thousands of frames.
func TestReceivedFramesKeepNoMoreThanTheirBytes(t *testing.T) {
	h := newHost(t, "  portGroups: [{name: web}]", "vm1 web", "vm2 web", "tap3 web")
	for name, c := range h.emit("vm1", "all vm1 0806", to("vm2 tap3")) {
		if most := 2 * len(c.frame); cap(c.frame) > most {
			t.Errorf("%s keeps %d bytes for a frame of %d", name, cap(c.frame), len(c.frame))
		}
	}
}
