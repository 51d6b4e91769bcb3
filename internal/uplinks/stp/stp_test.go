package stp

import (
	"encoding/hex"
	"testing"

	"heddle/internal/plan"
)

// rapid is a rapid BPDU of a designated port, as Linux' bridges of others send them: with these flags.
func rapid(flags string) string {
	return "424203" + "0000" + "02" + "02" + flags + "8000020000000001" + "00000000" + "8001020000000002" + "8003" +
		"0000" + "1400" + "0200" + "0f00" + "00"
}

func TestS172_WhatABridgeSaysOfItsPort(t *testing.T) {
	root, own := Bridge{0x8000, plan.MAC{2, 0, 0, 0, 0, 1}}, Bridge{0x8001, plan.MAC{2, 0, 0, 0, 0, 2}}
	for what, c := range map[string]struct {
		frame string
		want  Port
	}{
		"designated, forwarding": {rapid("3c"), Port{root, own, 0x8003, true, false}},
		"designated, learning":   {rapid("1e"), Port{root, own, 0x8003, true, true}},
		"designated, discarding": {rapid("0e"), Port{root, own, 0x8003, true, true}},
		"alternate":              {rapid("04"), Port{root, own, 0x8003, true, false}},
		"configuration": {"424203" + "0000" + "00" + "00" + "00" + "8000020000000001" + "00000000" +
			"8001020000000002" + "8003" + "0000" + "1400" + "0200" + "0f00", Port{root, own, 0x8003, false, false}},
	} {
		t.Run(what, func(t *testing.T) {
			b, err := hex.DecodeString(c.frame)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := Decode(b); err != nil || p != c.want {
				t.Errorf("%+v, %v", p, err)
			}
			for n := range longest {
				if p, err := Decode(b[:n]); err == nil {
					t.Errorf("%d bytes are %+v", n, p)
				}
			}
		})
	}
	if _, err := Decode(append([]byte{0x42, 0x42, 3, 0, 0, 0, 0x80}, make([]byte, 39)...)); err == nil {
		t.Error("a change of topology says something of a port")
	}
}
