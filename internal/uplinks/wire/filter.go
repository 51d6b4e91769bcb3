package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"heddle/internal/abi"
)

// maxProgram is the longest filter that the kernel accepts, in instructions (BPF_MAXINSNS).
const maxProgram = 4096

// errLong: the filter has too many sources or groups.
var errLong = errors.New("the socket's filter is too long")

// filter returns the program of a socket that receives on the device what l describes. When the kernel looks for the
// socket of an EtherType, it has already removed a VLAN tag. What still shows that there was a tag: the frame's kind
// ("for another host"), the VLAN's device, and the mark that the switch program gives to frames that are not a
// neighbour's.
func (l Listen) filter(ifindex uint32) ([]bpf.Instruction, error) {
	p := l.origin(ifindex)
	p = append(p, l.bytes()...)
	p = append(p, bpf.RetConstant{Val: maxFrame})
	if len(p) > maxProgram {
		return nil, errLong
	}
	return p, nil
}

// origin returns the part of the filter about the origin of a frame, which its metadata shows.
func (l Listen) origin(ifindex uint32) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 1},
		refuse,
		bpf.LoadExtension{Num: bpf.ExtMark},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: abi.MarkNotNeighbour, SkipTrue: 1},
		refuse,
	}
	if l.Tagged {
		return p
	}
	return append(p,
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_OTHERHOST, SkipTrue: 1},
		refuse,
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: ifindex, SkipTrue: 1},
		refuse,
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		refuse)
}

// refuse drops the frame.
var refuse = bpf.RetConstant{Val: 0}

// bytes returns the part of the filter about the frame's own bytes.
func (l Listen) bytes() []bpf.Instruction {
	p := field(12, [][]byte{binary.BigEndian.AppendUint16(nil, l.EtherType)})
	if l.LLC {
		p = []bpf.Instruction{
			bpf.LoadAbsolute{Off: 12, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: longest8023, SkipTrue: 1},
			refuse,
		}
	}
	if len(l.Groups) > 0 {
		p = append(p, field(0, slicesOf(l.Groups))...)
	}
	if l.Sources != nil {
		p = append(p, field(6, slicesOf(l.Sources))...)
	}
	p = append(p,
		bpf.LoadExtension{Num: bpf.ExtLen},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(header + l.MinPayload), SkipTrue: 1},
		refuse)
	for _, x := range l.Fields {
		p = append(p, field(header+x.Offset, x.Values)...)
	}
	return p
}

func slicesOf(addresses [][6]byte) (out [][]byte) {
	for _, a := range addresses {
		out = append(out, a[:])
	}
	return out
}

// field refuses the frame unless one of the values is at the offset. Each value is compared in words; the first word
// that differs leads to the next value, the end of a value to the end of the field.
func field(at int, values [][]byte) (p []bpf.Instruction) {
	var ones [][]bpf.Instruction
	rest := 1 // instructions from here to the end: the refusal
	for i := len(values) - 1; i >= 0; i-- {
		one := compare(at, values[i], rest)
		ones = append(ones, one)
		rest += len(one)
	}
	for i := len(ones) - 1; i >= 0; i-- {
		p = append(p, ones[i]...)
	}
	return append(p, refuse)
}

// compare jumps over the rest if the value is at the offset, and to the next instruction otherwise.
func compare(at int, value []byte, rest int) (p []bpf.Instruction) {
	words := split(value)
	for i, w := range words {
		left := 2*(len(words)-1-i) + 1 // instructions of this value after this word's
		p = append(p, bpf.LoadAbsolute{Off: uint32(at), Size: len(w)},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number(w), SkipTrue: uint8(left)})
		at += len(w)
	}
	return append(p, bpf.Jump{Skip: uint32(rest)})
}

func split(value []byte) (words [][]byte) {
	for len(value) > 0 {
		n := 4
		for n > len(value) {
			n /= 2
		}
		words, value = append(words, value[:n]), value[n:]
	}
	return words
}

func number(b []byte) (n uint32) {
	for _, c := range b {
		n = n<<8 | uint32(c)
	}
	return n
}

// attach gives the socket the filter, and replaces the previous one.
func attach(fd int, p []bpf.Instruction) error {
	raw, err := bpf.Assemble(p)
	if err != nil {
		return err
	}
	if len(raw) > math.MaxUint16 {
		return errLong
	}
	prog := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog)
}
