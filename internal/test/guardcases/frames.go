package guardcases

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// eth is a broadcast frame of the guarded port.
func eth(kind uint16, rest ...[]byte) []byte {
	f := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1}
	return slices.Concat(binary.BigEndian.AppendUint16(f, kind), slices.Concat(rest...))
}

// change is b with another byte at an offset.
func change(b []byte, at int, to byte) []byte {
	b = slices.Clone(b)
	b[at] = to
	return b
}

func address(s string) []byte { return netip.MustParseAddr(s).AsSlice() }

// ip4 is a packet; part is the word of its flags and offset.
func ip4(src, dst string, protocol byte, part uint16, payload []byte) []byte {
	b := []byte{0x45, 0, 0, byte(20 + len(payload)), 0, 1, byte(part >> 8), byte(part), 64, protocol, 0, 0}
	return slices.Concat(b, address(src), address(dst), payload)
}

// options puts one word of options into a packet without any.
func options(b []byte) []byte {
	b = slices.Concat(b[:20], []byte{1, 1, 1, 0}, b[20:])
	b[0], b[3] = 0x46, b[3]+4
	return b
}

func ip6(src, dst string, next byte, payload ...[]byte) []byte {
	body := slices.Concat(payload...)
	return slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(body)), next, 255}, address(src), address(dst), body)
}

func udp(src, dst uint16) []byte {
	return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, src), dst), 0, 8, 0, 0)
}

// fragment is a fragment header with the word of its offset and flag.
func fragment(next byte, part uint16) []byte {
	return []byte{next, 0, byte(part >> 8), byte(part), 0, 0, 0, 1}
}

// headers are n headers of destination options in front of what next says.
func headers(n int, next byte) (b []byte) {
	for i := range n {
		following := byte(60)
		if i == n-1 {
			following = next
		}
		b = append(b, following, 0, 1, 4, 0, 0, 0, 0)
	}
	return b
}

// icmp is a message of ICMPv6 with that many bytes.
func icmp(kind byte, length int) []byte { return append([]byte{kind}, make([]byte, length-1)...) }

func advertise(target string) []byte {
	return slices.Concat([]byte{136, 0, 0, 0, 0x20, 0, 0, 0}, address(target), []byte{2, 1, 2, 0, 0, 0, 0, 1})
}

func solicit(target string) []byte {
	return slices.Concat([]byte{135, 0, 0, 0, 0, 0, 0, 0}, address(target))
}

func arpBody(operation byte, sender, target string) []byte {
	return slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 1}, address(sender), make([]byte, 6),
		address(target))
}
