package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendStream writes into one connection and takes the measured bytes from the kernel's count of acknowledged ones: what
// waits in a buffer has not been carried.
func sendStream(h *halt, load Load, to netip.AddrPort) (*Stream, error) {
	fd, err := dialStream(h, load, to)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, load.Size)
	c := newClock(h, load)
	var before, after *unix.TCPInfo
	for c.phase != over {
		if err := writeSome(fd, buf); err != nil {
			return nil, fmt.Errorf("write: %w", err)
		}
		if !c.step(time.Now()) {
			continue
		}
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return nil, fmt.Errorf("read TCP_INFO: %w", err)
		}
		if c.phase == measuring {
			before = info
		}
		after = info
	}
	if before == nil {
		return nil, errors.New("halted before the measured interval began")
	}
	acked := after.Bytes_acked - before.Bytes_acked
	return &Stream{
		Seconds: c.seconds, Bytes: acked, BitsPerSecond: 8 * c.per(acked),
		Retransmits: uint64(after.Total_retrans - before.Total_retrans), Segments: uint64(after.Data_segs_out - before.Data_segs_out),
		Sent: after.Bytes_sent - before.Bytes_sent, CPUSeconds: c.cpu,
	}, nil
}

// dialStream opens the stream's connection.
func dialStream(h *halt, load Load, to netip.AddrPort) (int, error) {
	fd, err := dial(h, to)
	if err != nil || !load.Nagle {
		return fd, err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 0); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("clear TCP_NODELAY: %w", err)
	}
	return fd, nil
}

// unwatched is how many bytes may be written without a look at the clock, which costs a tenth of a small write.
const unwatched = 1 << 10

// writeSome writes the message, and a small one several times. What fits into the socket's buffer is written by a call that the Go
// scheduler does not watch over: it never blocks, and watching costs another tenth. Then it waits, as a blocking write does.
func writeSome(fd int, message []byte) error {
	for written := 0; written <= unwatched; written += len(message) {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(message))), uintptr(len(message)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch {
		case errno == 0 && int(n) == len(message):
			continue
		case errno == 0: // the rest of the message follows when there is room for it
			message = message[n:]
		case !again(errno):
			return errno
		}
		if _, err := unix.Write(fd, message); err != nil && !again(err) {
			return err
		}
		return nil
	}
	return nil
}
