package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// bulk is the priority of what gives way to all other traffic (TC_PRIO_BULK): the host's queueing discipline sends
	// it last.
	bulk = 2
	// bulkRoom is how many bytes of received frames wait in the kernel: a busy reader is not to look like a network
	// that loses frames.
	bulkRoom = 8 << 20
)

// OpenBulk opens a socket like Open, for many frames: what it sends gives way to other traffic of the host, and what it
// receives may wait.
func OpenBulk(ifindex uint32, listen Listen) (*Conn, error) {
	c, err := Open(ifindex, listen)
	if err != nil {
		return nil, err
	}
	raw, err := c.file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var serr error
	err = raw.Control(func(fd uintptr) {
		serr = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, bulk),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bulkRoom))
	})
	if err = errors.Join(err, serr); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket for many frames: %w", err), c.Close())
	}
	return c, nil
}
