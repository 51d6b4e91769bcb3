package dataplane

import (
	"testing"

	"heddle/internal/abi"
)

func TestFiltersThatTheProgramDoesNotKnowAreRefused(t *testing.T) {
	type in = abi.FilterInstruction
	ret := in{Code: 0x06, K: 1}
	for name, f := range map[string][]in{
		"nothing": nil, "all": {ret}, "a jump to the end": {{Code: 0x15, JumpTrue: 1}, ret, ret},
		"memory": {{Code: 0x02, K: 15}, ret}, "as long as can be": append(make([]in, abi.MaxFilter-1), ret),
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckFilter(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for name, f := range map[string][]in{
		"too long":           append(make([]in, abi.MaxFilter), ret),
		"no return":          {{Code: 0x28, K: 12}},
		"beyond the end":     {{Code: 0x15, JumpFalse: 1}, ret},
		"far beyond":         {{Code: 0x05, K: 0xffffffff}, ret},
		"the kernel's own":   {{Code: 0x28, K: 0xfffff000}, ret},
		"no such memory":     {{Code: 0x60, K: 16}, ret},
		"a division by zero": {{Code: 0x34}, ret},
		"a wide shift":       {{Code: 0x64, K: 32}, ret},
		"unknown":            {{Code: 0x18}, ret},
		"ends in a jump":     {ret, {Code: 0x05}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckFilter(f); err == nil {
				t.Errorf("%s: no error", name)
			}
		})
	}
}
