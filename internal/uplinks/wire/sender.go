package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"heddle/internal/abi"
)

// Sender sends frames on any device of the network namespace it was opened in. It receives nothing.
type Sender struct{ fd, through int }

// OpenSender opens sockets that send. What Send sends goes directly to the device, past the queueing discipline and
// past the programs at the host's egress.
func OpenSender() (*Sender, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket past the queueing discipline: %w", err), unix.Close(fd))
	}
	through, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err), unix.Close(fd))
	}
	if err := unix.SetsockoptInt(through, unix.SOL_SOCKET, unix.SO_MARK, abi.MarkAgent); err != nil {
		return nil, errors.Join(fmt.Errorf("mark what the agent sends: %w", err), unix.Close(through), unix.Close(fd))
	}
	return &Sender{fd, through}, nil
}

// Send sends a whole frame on the device with that ifindex.
func (s *Sender) Send(ifindex uint32, frame []byte) error {
	return unix.Sendto(s.fd, frame, unix.MSG_DONTWAIT, &unix.SockaddrLinklayer{Ifindex: int(ifindex)})
}

// SendThrough sends a whole frame on the device with that ifindex, by way of the program at the device's egress, which
// sees by its mark that the agent sent it: on a tunnel, that program knows which hosts it is for.
func (s *Sender) SendThrough(ifindex uint32, frame []byte) error {
	return unix.Sendto(s.through, frame, unix.MSG_DONTWAIT, &unix.SockaddrLinklayer{Ifindex: int(ifindex)})
}

// Close closes the sockets.
func (s *Sender) Close() error { return errors.Join(unix.Close(s.through), unix.Close(s.fd)) }
