package abi

//go:generate go run ./gen clang-19 ../../bpf/abi.bpf.c abi_gen.go

import (
	"fmt"
	"iter"
)

// Reasons yields every reason but ReasonNone, in the order of their numbers. Numbers that no reason has are left out.
func Reasons() iter.Seq[Reason] {
	return func(yield func(Reason) bool) {
		for r := ReasonNone + 1; r < ReasonCount; r++ {
			if reasonNames[r] != "" && !yield(r) {
				return
			}
		}
	}
}

// String is the public name of the reason: "forged-transmit".
func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason-%d", uint8(r))
}

// ParseReason finds a reason by its public name.
func ParseReason(name string) (Reason, bool) {
	for i, n := range reasonNames {
		if n != "" && n == name {
			return Reason(i), true
		}
	}
	return 0, false
}

// MarshalText writes the public name.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the public name.
func (r *Reason) UnmarshalText(b []byte) error {
	got, ok := ParseReason(string(b))
	if !ok {
		return fmt.Errorf("%q is not a drop reason", b)
	}
	*r = got
	return nil
}
