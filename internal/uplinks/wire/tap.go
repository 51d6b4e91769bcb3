package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Tap receives copies of the frames of a device that a filter accepts, in both directions. The frames themselves go
// their way: a tap that is not read fast enough loses copies, and counts them.
type Tap struct {
	file  *os.File
	index int
	buf   []byte
	oob   [256]byte
}

// Tapped is one frame. Frame is valid until the next call, and may have fewer bytes than the frame's Length.
type Tapped struct {
	Time     time.Time
	Outgoing bool // the device sent it
	Length   int
	Frame    []byte
}

// OpenTap opens a tap on the device with that ifindex; memory is the most that it keeps for its reader, in bytes,
// longest the longest frame. Needs CAP_NET_RAW and CAP_NET_ADMIN. Nothing is received before the filter holds.
func OpenTap(ifindex int, filter []bpf.Instruction, memory, longest int) (*Tap, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err)
	}
	all := uint16(unix.ETH_P_ALL)
	if err := errors.Join(attach(fd, filter),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, memory),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: ifindex})); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on device %d: %w", ifindex, err), unix.Close(fd))
	}
	return &Tap{file: os.NewFile(uintptr(fd), "tap"), index: ifindex, buf: make([]byte, longest)}, nil
}

// Next waits for the next frame. After Stop it does not wait, and its error is io.EOF when all are read. That a device
// disappears or goes down is an error too.
func (t *Tap) Next() (Tapped, error) {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return Tapped{}, err
	}
	var n, oobn int
	var from unix.Sockaddr
	var rerr error
	receive := func(fd uintptr) bool {
		for n, oobn, rerr = 0, 0, unix.EINTR; errors.Is(rerr, unix.EINTR); {
			n, oobn, _, from, rerr = unix.Recvmsg(int(fd), t.buf[4:], t.oob[:], 0)
		}
		return !errors.Is(rerr, unix.EAGAIN)
	}
	err = raw.Read(receive)
	if errors.Is(err, os.ErrDeadlineExceeded) { // it is stopped
		if err = raw.Control(func(fd uintptr) { receive(fd) }); errors.Is(rerr, unix.EAGAIN) {
			rerr = io.EOF
		}
	}
	if err = errors.Join(err, rerr); err != nil {
		return Tapped{}, err
	}
	return t.read(n, t.oob[:oobn], from)
}

// Stop has no more frames come; those that are there can still be read.
func (t *Tap) Stop() error {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	err = raw.Control(func(fd uintptr) { ferr = attach(int(fd), []bpf.Instruction{refuse}) })
	return errors.Join(err, ferr, t.file.SetReadDeadline(time.Now()))
}

// read makes a frame of what came, with the tag that the kernel keeps beside it.
func (t *Tap) read(n int, oob []byte, from unix.Sockaddr) (Tapped, error) {
	f := Tapped{Frame: t.buf[4 : 4+n], Length: n}
	if ll, ok := from.(*unix.SockaddrLinklayer); ok {
		f.Outgoing = ll.Pkttype == unix.PACKET_OUTGOING
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return f, fmt.Errorf("read what the kernel says of a frame: %w", err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS &&
			len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})):
			ts := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			f.Time = time.Unix(ts.Unix())
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA &&
			len(m.Data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
			f.Length = int(aux.Len)
			if aux.Status&unix.TP_STATUS_VLAN_VALID != 0 && n >= 12 {
				copy(t.buf, t.buf[4:16])
				binary.BigEndian.PutUint16(t.buf[12:], aux.Vlan_tpid)
				binary.BigEndian.PutUint16(t.buf[14:], aux.Vlan_tci)
				f.Frame, f.Length = t.buf[:4+n], f.Length+4
			}
		}
	}
	return f, nil
}

// Counts returns how many frames the filter accepted since the last call, and how many of them were lost because the
// reader was too slow.
func (t *Tap) Counts() (accepted, lost uint64, err error) {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var s *unix.TpacketStats
	var serr error
	err = raw.Control(func(fd uintptr) {
		s, serr = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	})
	if err = errors.Join(err, serr); err != nil {
		return 0, 0, fmt.Errorf("read how many frames were lost: %w", err)
	}
	return uint64(s.Packets), uint64(s.Drops), nil
}

// Close closes the socket, after the last Next.
func (t *Tap) Close() error { return t.file.Close() }
