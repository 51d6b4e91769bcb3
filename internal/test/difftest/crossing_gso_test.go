package difftest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// tcpFrame is a frame of TCP with that much payload, in IPv4 or IPv6.
func tcpFrame(v6 bool, payload int) []byte {
	frame := []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 5}
	if v6 {
		frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0)
		frame = binary.BigEndian.AppendUint16(frame, uint16(20+payload))
		frame = append(append(frame, 6, 64), make([]byte, 32)...)
	} else {
		frame = append(frame, 8, 0, 0x45, 0)
		frame = binary.BigEndian.AppendUint16(frame, uint16(40+payload))
		frame = append(append(frame, 0, 0, 0, 0, 64, 6, 0, 0), make([]byte, 8)...)
	}
	header := make([]byte, 20)
	header[12] = 5 << 4
	return append(append(frame, header...), make([]byte, payload)...)
}

// TestS105_ALargeFrameCountsAsThePacketsItIsCutInto: a frame that the kernel will cut leaves if each of the packets
// fits with its own headers, to the byte.
func TestS105_ALargeFrameCountsAsThePacketsItIsCutInto(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateHead)
	x.set(t, crossingFacts()[0], x.reaches()[0]) // an underlay of 1,600 bytes: 1,550 over IPv4, 1,530 over IPv6
	const header = 40
	for _, v6 := range []bool{false, true} {
		inner := header
		if v6 {
			inner += 20
		}
		for _, row := range []struct {
			size   int
			v4, v6 bool // fits the underlay, by its family
		}{{1530 - inner, true, true}, {1531 - inner, true, false}, {1550 - inner, true, false},
			{1551 - inner, false, false}} {
			t.Run(fmt.Sprintf("IPv6=%v,%d", v6, row.size), func(t *testing.T) {
				got, err := x.kernel.Leave("s", 10, tcpFrame(v6, 3000), uint32(row.size), x.now)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != 6 {
					t.Fatalf("%d packets: %+v", len(got), got)
				}
				for _, o := range got {
					fits := row.v4
					if o.To.Is6() {
						fits = row.v6
					}
					if (o.Reason == abi.ReasonNone) != fits || !fits && o.Reason != abi.ReasonTunnelMTU {
						t.Errorf("to %s, %d bytes below %d of outer headers: %s", o.To, row.size+inner,
							overlay.Headroom(o.To), o.Reason)
					}
				}
			})
		}
	}
}
