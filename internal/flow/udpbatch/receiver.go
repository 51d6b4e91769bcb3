package udpbatch

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Receiver reads a UDP socket, many datagrams at once if they came in one piece. It is for one goroutine.
type Receiver struct {
	conn  *net.UDPConn
	bytes []byte
	oob   []byte
}

// NewReceiver makes the receiver of a socket, from which nobody else reads. On a kernel without UDP_GRO it reads
// datagrams one by one.
func NewReceiver(conn *net.UDPConn) (*Receiver, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, 1) })
	return &Receiver{conn: conn, bytes: make([]byte, 1<<16), oob: make([]byte, 64)}, err
}

// Receive waits for datagrams, and passes each to each: at least one. The bytes are valid until the next call.
func (r *Receiver) Receive(each func(from netip.AddrPort, datagram []byte)) error {
	n, oobn, _, from, err := r.conn.ReadMsgUDPAddrPort(r.bytes, r.oob)
	if err != nil {
		return err
	}
	length, err := segment(r.oob[:oobn])
	if err != nil {
		return err
	}
	if length == 0 {
		length = n
	}
	left := r.bytes[:n]
	for len(left) > length {
		each(from, left[:length:length])
		left = left[length:]
	}
	each(from, left)
	return nil
}

// segment is the length of datagrams that came in one piece, except for the last, which may be shorter; 0 if one came
// alone.
func segment(oob []byte) (int, error) {
	for len(oob) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0, fmt.Errorf("what the kernel says of a datagram: %w", err)
		}
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(data) >= 4 {
			return int(binary.NativeEndian.Uint32(data)), nil
		}
		oob = rest
	}
	return 0, nil
}
