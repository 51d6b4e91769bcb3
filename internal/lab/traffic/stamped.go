package traffic

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// countStamped counts numbered packets by the times that the kernel noted for them.
func (s *Sink) countStamped() error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
	}
	buf, oob := make([]byte, maxPayload), make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))))
	for !s.abort.Load() {
		n, control, _, _, err := unix.Recvmsg(s.fd, buf, oob, 0)
		if s.stopping() && (err != nil || n == 0) {
			return nil
		}
		if again(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if p, ok := parseHeader(buf[:n]); ok {
			s.take(p, n, stamp(oob[:control]))
		}
	}
	return nil
}

// stamp reads the time from a packet's control messages; one that came before the option was set has none.
func stamp(oob []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return time.Now()
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS &&
			len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ts := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return time.Unix(ts.Unix())
		}
	}
	return time.Now()
}
