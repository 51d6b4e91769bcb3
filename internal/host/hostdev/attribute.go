package hostdev

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// eachAttribute calls f for every attribute of a netlink message, with its type, without flags, and its value, until f
// returns an error. It allocates no list of them: every device of the host is read once a minute. The error is EINVAL
// if an attribute is shorter than its header, or longer than the message.
func eachAttribute(b []byte, f func(kind uint16, value []byte) error) error {
	for len(b) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			return unix.EINVAL
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		if err := f(kind, b[unix.SizeofRtAttr:length]); err != nil {
			return err
		}
		const align = unix.RTA_ALIGNTO - 1
		b = b[min(len(b), (length+align)&^align):]
	}
	return nil
}
