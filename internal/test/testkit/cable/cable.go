package cable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// patience is how long a frame that must come is awaited.
const patience = 2 * time.Minute

// End is one end of a cable: a raw socket on a device.
type End struct {
	t     testing.TB
	name  string
	fd    int
	index int
}

// Open opens the device in the namespace; nil means the caller's. It goes with the test.
func Open(t testing.TB, ns *netns.NS, device string) *End {
	t.Helper()
	e := &End{t: t, name: device, fd: -1}
	open := func() error { return e.open(device) }
	var err error
	if ns == nil {
		err = open()
	} else {
		err = ns.Do(open)
	}
	if err != nil {
		t.Fatalf("open device %s: %v", device, err)
	}
	t.Cleanup(func() {
		if err := unix.Close(e.fd); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *End) open(device string) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	e.index = l.Attrs().Index
	if e.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	return errors.Join(
		unix.SetsockoptInt(e.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.SetsockoptInt(e.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		// what comes before a test reads must not be lost
		unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
		unix.Bind(e.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: e.index}),
	)
}

// Send sends a frame. Where the machine is too busy to empty the cable's queue, the cable takes it a little later.
func (e *End) Send(frame []byte) {
	e.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := unix.Write(e.fd, frame)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.ENOBUFS) || time.Now().After(deadline) {
			e.t.Fatalf("send on %s: %v", e.name, err)
		}
	}
}

// Reflect answers every frame to that address, until the context ends: back on the cable, its addresses exchanged.
func (e *End) Reflect(ctx context.Context, address [6]byte) error {
	for ctx.Err() == nil {
		f, err := e.next(100 * time.Millisecond)
		if err != nil {
			return fmt.Errorf("receive on %s: %w", e.name, err)
		}
		if len(f) < 14 || [6]byte(f) != address {
			continue
		}
		copy(f[:6], f[6:12])
		copy(f[6:12], address[:])
		// The cable may be unplugged for a while, as a real one.
		if _, err := unix.Write(e.fd, f); err != nil && !errors.Is(err, unix.ENETDOWN) &&
			!errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("send on %s: %w", e.name, err)
		}
	}
	return nil
}

// Watch hands over every frame that comes, until the context ends.
func (e *End) Watch(ctx context.Context, take func(frame []byte)) error {
	for ctx.Err() == nil {
		f, err := e.next(100 * time.Millisecond)
		if err != nil {
			return fmt.Errorf("receive on %s: %w", e.name, err)
		}
		if len(f) > 0 { // nothing came: the device went down, or a signal
			take(f)
		}
	}
	return nil
}

// Await waits for the frame and drops what comes before it. It says whether the frame came in time.
func (e *End) Await(frame []byte, within time.Duration) bool {
	e.t.Helper()
	for deadline := time.Now().Add(within); ; {
		got, err := e.next(time.Until(deadline))
		if err != nil {
			e.t.Fatalf("receive on %s: %v", e.name, err)
		}
		if got == nil {
			return false
		}
		if bytes.Equal(got, frame) {
			return true
		}
	}
}

// Forget drops what has come so far.
func (e *End) Forget() {
	e.t.Helper()
	e.Hears(func([]byte) bool { return false })
}

// Hears drops what has come so far, and says whether such a frame was among it.
func (e *End) Hears(such func(frame []byte) bool) (heard bool) {
	e.t.Helper()
	for {
		got, err := e.next(0)
		if err != nil {
			e.t.Fatalf("receive on %s: %v", e.name, err)
		}
		if got == nil {
			return heard
		}
		heard = heard || such(got)
	}
}

// Expect fails the test unless the frame comes.
func (e *End) Expect(frame []byte, why string) {
	e.t.Helper()
	if !e.Await(frame, patience) {
		e.t.Fatalf("%s: %s did not receive %x", why, e.name, frame)
	}
}

// Until returns the frames that come before the marker, which must come. Frames of other types than Frame's are left
// out: a device's stack sends some of its own.
func (e *End) Until(marker []byte) (before [][]byte) {
	e.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, err := e.next(time.Until(deadline))
		switch {
		case err != nil:
			e.t.Fatalf("receive on %s: %v", e.name, err)
		case got == nil:
			e.t.Fatalf("%s did not receive %x", e.name, marker)
		case bytes.Equal(got, marker):
			return before
		case typeOf(got) == frameType:
			before = append(before, got)
		}
	}
}

// frameType is the experimental type of frames that tests send (IEEE 802).
const frameType = 0x88b5

// typeOf is the EtherType behind the tags, 0 of a frame that ends before.
func typeOf(frame []byte) uint16 {
	for at := 12; at+2 <= len(frame); at += 4 {
		switch t := binary.BigEndian.Uint16(frame[at:]); t {
		case unix.ETH_P_8021Q, unix.ETH_P_8021AD:
		default:
			return t
		}
	}
	return 0
}

// Gather returns the frames that come until enough, asked after each, says so; that must happen.
func (e *End) Gather(why string, enough func(all [][]byte) bool) (all [][]byte) {
	e.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, err := e.next(time.Until(deadline))
		switch {
		case err != nil:
			e.t.Fatalf("receive on %s: %v", e.name, err)
		case got == nil:
			e.t.Fatalf("%s: not on %s; what came is %x", why, e.name, all)
		}
		if all = append(all, got); enough(all) {
			return all
		}
	}
}

// Refuse fails the test when the frame has come: what is waiting now is looked through, so that the caller must first
// have seen something that comes after it.
func (e *End) Refuse(frame []byte, why string) {
	e.t.Helper()
	if e.Await(frame, 0) {
		e.t.Errorf("%s: %s received %x", why, e.name, frame)
	}
}

// next is the next frame, nil when none comes in time.
func (e *End) next(within time.Duration) ([]byte, error) {
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}}, int(max(0, within.Milliseconds())))
	if errors.Is(err, unix.EINTR) {
		return []byte{}, nil
	}
	if err != nil || ready == 0 {
		return nil, err
	}
	buf, oob := make([]byte, 1<<16), make([]byte, 64)
	n, oobn, _, _, err := unix.Recvmsg(e.fd, buf, oob, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.ENETDOWN) { // told once, when the device goes down
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	return withTag(bytes.Clone(buf[:n]), oob[:oobn]) // who keeps the frame keeps its bytes and no more
}

// withTag puts the tag that the kernel holds beside the frame into it (packet(7), PACKET_AUXDATA).
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

// MAC is the locally administered address 02:00:00:00:00:n.
func MAC(n byte) [6]byte { return [6]byte{2, 0, 0, 0, 0, n} }

// Broadcast is the address of all.
func Broadcast() [6]byte { return [6]byte{255, 255, 255, 255, 255, 255} }

// Frame is a 60-byte frame of the experimental type 0x88b5 (IEEE 802), tagged with the VLAN unless it is 0, that
// carries the text.
func Frame(to, from [6]byte, vlan uint16, text string) []byte {
	f := append(append([]byte{}, to[:]...), from[:]...)
	size := 60
	if vlan != 0 {
		f, size = append(f, 0x81, 0, byte(vlan>>8), byte(vlan)), size+4
	}
	f = append(append(f, 0x88, 0xb5), text...)
	return append(f, make([]byte, max(0, size-len(f)))...)
}
