package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendStream writes into one connection. The measured bytes are those that the kernel counts as acknowledged: bytes
// that wait in a buffer do not count.
func sendStream(h *halt, load Load, to netip.AddrPort) (*Stream, error) {
	fd, err := dialStream(h, load, to)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, load.Size)
	c := newClock(h, load)
	var before, after *unix.TCPInfo
	var rest []byte
	for c.phase != over {
		if rest, err = writeSome(fd, buf, rest); err != nil {
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
	if err := writeRest(h, fd, rest); err != nil {
		return nil, err
	}
	acked := after.Bytes_acked - before.Bytes_acked
	return &Stream{
		Seconds: c.seconds, Bytes: acked, BitsPerSecond: 8 * c.per(acked),
		Retransmits: uint64(after.Total_retrans - before.Total_retrans),
		Segments:    uint64(after.Data_segs_out - before.Data_segs_out),
		Sent:        after.Bytes_sent - before.Bytes_sent, CPUSeconds: c.cpu,
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

// unwatched is how many bytes may be written before the time is read again, which costs a tenth of a small write.
const unwatched = 1 << 10

// writeSome writes what is left of the last message, if anything, then the message, and a small one several times. What
// fits into the socket's buffer is written by a call that bypasses the Go scheduler: it never blocks, and the scheduler
// would cost another tenth. Then it waits once, like a blocking write, and returns what neither call could write: a
// signal or the socket's timeout ends a blocking write in the middle of a message.
func writeSome(fd int, message, rest []byte) ([]byte, error) {
	if len(rest) == 0 {
		rest = message
	}
	for written := 0; written <= unwatched; written += len(message) {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(rest))),
			uintptr(len(rest)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch {
		case errno == 0 && int(n) == len(rest):
			rest = message
			continue
		case errno == 0: // the rest of the message follows when there is space
			rest = rest[n:]
		case !again(errno):
			return nil, errno
		}
		k, err := unix.Write(fd, rest)
		if err != nil && !again(err) {
			return nil, err
		}
		return rest[max(k, 0):], nil
	}
	return nil, nil
}

// writeRest completes the last message of a stream, unless the receiver reads no more.
func writeRest(h *halt, fd int, rest []byte) error {
	deadline := time.Now().Add(connectPatience)
	err := writeFull(fd, rest, func() bool { return h.asked() || time.Now().After(deadline) })
	if errors.Is(err, errHalted) {
		return nil
	}
	return err
}
