package hostdev

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// execute sends a request and passes on the body of each message of that kind in the answer. A body is valid until each
// returns. The first error of each is returned once the answer was read to its end, as the next request needs that.
func (a *asker) execute(req *nl.NetlinkRequest, kind uint16, each func(body []byte) error) error {
	a.sequence++
	req.Seq = a.sequence
	if err := unix.Sendto(a.fd, req.Serialize(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	r := reading{sequence: a.sequence, kind: kind, each: each}
	for !r.ended {
		// With MSG_TRUNC the kernel tells how long the datagram was, also where it did not fit.
		n, from, err := unix.Recvfrom(a.fd, a.answer, unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n > len(a.answer):
			return fmt.Errorf("netlink: an answer of %d bytes does not fit", n)
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
			continue // another process may send to this socket
		}
		if err := r.datagram(a.answer[:n]); err != nil {
			return err
		}
	}
	if r.failed == nil && r.interrupted {
		return nl.ErrDumpInterrupted
	}
	return r.failed
}

// reading is how far an answer was read.
type reading struct {
	sequence    uint32
	kind        uint16
	each        func(body []byte) error
	ended       bool
	interrupted bool  // what was listed changed meanwhile
	failed      error // the first error of each
}

// datagram reads the messages of a datagram. The error is what the kernel answered, or says that it cannot be read.
func (r *reading) datagram(b []byte) error {
	for len(b) >= unix.SizeofNlMsghdr && !r.ended {
		length := int(binary.NativeEndian.Uint32(b))
		if length < unix.SizeofNlMsghdr || length > len(b) {
			return errShort
		}
		kind, flags := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:])
		sequence, body := binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:length]
		const align = unix.NLMSG_ALIGNTO - 1
		b = b[min(len(b), (length+align)&^align):]
		if sequence != r.sequence { // of an earlier request, which was given up
			continue
		}
		if err := r.message(kind, flags, body); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) message(kind, flags uint16, body []byte) error {
	r.interrupted = r.interrupted || flags&unix.NLM_F_DUMP_INTR != 0
	switch {
	case kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR:
		r.ended = true
		if errno := int32(word(body)); errno < 0 {
			return unix.Errno(-errno)
		}
		return nil
	case kind == r.kind && r.failed == nil:
		r.failed = r.each(body)
	}
	r.ended = flags&unix.NLM_F_MULTI == 0
	return nil
}
