package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Sender sends frames on any device of the network namespace it was opened in. It receives nothing.
type Sender struct{ fd int }

// OpenSender opens a socket that sends. Its frames go directly to the device, past the queueing discipline and past the
// programs at the host's egress.
func OpenSender() (*Sender, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket past the queueing discipline: %w", err), unix.Close(fd))
	}
	return &Sender{fd}, nil
}

// Send sends a whole frame on the device with that ifindex.
func (s *Sender) Send(ifindex uint32, frame []byte) error {
	return unix.Sendto(s.fd, frame, unix.MSG_DONTWAIT, &unix.SockaddrLinklayer{Ifindex: int(ifindex)})
}

// Close closes the socket.
func (s *Sender) Close() error { return unix.Close(s.fd) }
