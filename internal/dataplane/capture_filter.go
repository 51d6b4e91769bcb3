package dataplane

import (
	"errors"
	"fmt"

	"heddle/internal/abi"
)

// CheckFilter returns what is wrong with a classic BPF program as a capture's filter. It may be empty; otherwise it
// must be a program that linux/filter.h describes, without the kernel's extensions, and end in a return.
func CheckFilter(f []abi.FilterInstruction) error {
	if len(f) > abi.MaxFilter {
		return fmt.Errorf("the filter compiles to %d instructions, and %d is the limit: simplify it", len(f),
			abi.MaxFilter)
	}
	for i, in := range f {
		if !knownFilterCode(in) {
			return fmt.Errorf("instruction %d of the filter is unknown: code %#x, k %#x", i, in.Code, in.K)
		}
		if in.Code&0x07 != 0x05 {
			continue
		}
		far := uint64(max(in.JumpTrue, in.JumpFalse))
		if in.Code == 0x05 {
			far = uint64(in.K)
		}
		if uint64(i)+1+far >= uint64(len(f)) {
			return fmt.Errorf("instruction %d of the filter jumps beyond its end", i)
		}
	}
	if len(f) > 0 && f[len(f)-1].Code&0x07 != 0x06 {
		return errors.New("the filter does not end in a return")
	}
	return nil
}

// knownFilterCode reports whether the program's interpreter knows the instruction (bpf/capture/filter.h).
func knownFilterCode(in abi.FilterInstruction) bool {
	const extensions = 0xfffff000 // from here on offsets are the kernel's own (SKF_AD_OFF and below)
	switch in.Code {
	case 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0xb1: // ld [k], ldh, ldb, ld [x+k], ldh, ldb, ldx 4*([k]&15)
		return in.K < extensions
	case 0x60, 0x61, 0x02, 0x03: // ld M[k], ldx, st, stx
		return in.K < abi.FilterMemory
	case 0x34, 0x94: // div, mod
		return in.K != 0
	case 0x64, 0x74: // lsh, rsh
		return in.K < 32
	case 0x00, 0x01, 0x80, 0x81, // ld #k, ldx #k, ld #len, ldx #len
		0x04, 0x14, 0x24, 0x44, 0x54, 0xa4, 0x84, // add, sub, mul, or, and, xor #k; neg
		0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c, 0x6c, 0x7c, 0x9c, 0xac, // with x
		0x05, 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d, // ja, jeq, jgt, jge, jset
		0x06, 0x16, 0x07, 0x87: // ret k, ret a, tax, txa
		return true
	}
	return false
}
