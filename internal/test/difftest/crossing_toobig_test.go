package difftest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// longPacket makes a frame with a packet of IPv4 or IPv6 that is about as long as a tunnel takes, or nearly one.
func longPacket(random *rand.Rand) []byte {
	frame := []byte{2, 0, 0, 0, 0, byte(random.IntN(9)), 2, 0, 0, 0, 0, byte(random.IntN(9))}
	if random.IntN(12) == 0 {
		frame[0] |= 1
	}
	for range []int{0, 0, 0, 0, 1, 1, 2}[random.IntN(7)] {
		frame = append(frame, 0x81, 0, byte(random.IntN(16))<<4, 7)
	}
	length := pick2(random, 560, 576, 1280, 1424, 1426, 1430, 1448, 1450, 1478, 1482, 1500, 1550, 3000) +
		random.IntN(5) - 2
	stated := length
	if random.IntN(6) == 0 {
		stated -= random.IntN(120)
	}
	at := len(frame) + 2
	if random.IntN(2) == 0 {
		frame = packet4(random, frame, stated)
	} else {
		frame = packet6(random, frame, stated)
	}
	for len(frame) < at+length {
		frame = append(frame, byte(random.IntN(256)))
	}
	return frame
}

var longProtocols = []byte{1, 6, 6, 6, 17, 17, 17, 47, 50, 58, 132}

func packet4(random *rand.Rand, frame []byte, length int) []byte {
	options := []int{0, 0, 0, 1, 10}[random.IntN(5)]
	frame = append(frame, 8, 0, 0x45+byte(options), byte(random.IntN(256)))
	frame = binary.BigEndian.AppendUint16(frame, uint16(length))
	flags := []byte{0x40, 0x40, 0x40, 0x40, 0, 0x60}[random.IntN(6)]
	frame = append(frame, 1, 2, flags, []byte{0, 0, 0, 0, 8}[random.IntN(5)], 64,
		longProtocols[random.IntN(len(longProtocols))], byte(random.IntN(256)), 7)
	for range 2 {
		first := []byte{10, 10, 10, 10, 192, 0, 127, 224, 255}[random.IntN(9)]
		frame = append(frame, first, byte(random.IntN(256)), 3, 4)
	}
	frame = append(frame, make([]byte, options*4)...)
	return append(frame, []byte{3, 8, 0, 5, 11, 12, 13}[random.IntN(7)])
}

func packet6(random *rand.Rand, frame []byte, length int) []byte {
	next := longProtocols[random.IntN(len(longProtocols))]
	kind := []byte{next, next, next, 0, 44, 60, 51}[random.IntN(7)]
	frame = append(frame, 0x86, 0xdd, 0x60|byte(random.IntN(16)), byte(random.IntN(256)), 0, 0)
	frame = binary.BigEndian.AppendUint16(frame, uint16(length-40))
	frame = append(frame, kind, 64)
	for range 2 {
		first := []byte{0xfd, 0xfd, 0xfd, 0xfe, 0x20, 0, 0xff}[random.IntN(7)]
		frame = append(frame, first, make([]byte, 14)[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(random.IntN(3)))
	}
	switch kind {
	case 0, 60:
		more := random.IntN(3)
		frame = append(frame, next, byte(more))
		frame = append(frame, make([]byte, 6+8*more)...)
	case 51:
		frame = append(frame, next, 4)
		frame = append(frame, make([]byte, 22)...)
	case 44:
		frame = append(frame, next, 0, 0, []byte{0, 1, 8, 9}[random.IntN(4)], 0, 0, 0, 9)
	}
	return append(frame, []byte{1, 2, 128, 129, 135, 137}[random.IntN(6)])
}

// TestS84_TheModelAndTheKernelAgreeOnErrors: what a port is answered whose packets do not fit the tunnel is the same to
// the byte, for packets of all kinds and lengths, near to what fits.
func TestS84_TheModelAndTheKernelAgreeOnErrors(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateHead)
	seed := uint64(time.Now().Unix() / 86400)
	random := rand.New(rand.NewPCG(seed, 1191))
	for i := range 20000 {
		if i%250 == 0 {
			x.set(t, crossingFacts()[i/250%3], x.reaches()[i/1000%3])
		}
		x.leave(t, 10, leavable(longPacket(random)))
	}
	x.settled(t)
	if x.answers < 1000 {
		t.Errorf("seed %d: only %d frames were answered", seed, x.answers)
	}
}

// TestS84_AFloodOfLongPacketsIsAnsweredInPart: a port that sends many gets as many errors as its budget has, another
// port its own, and a second later again some.
func TestS84_AFloodOfLongPacketsIsAnsweredInPart(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateHead)
	x.set(t, crossingFacts()[0], x.reaches()[0])
	frame := tcpFrame(false, 1531)
	copy(frame, []byte{2, 0, 0, 0, 0, 1}) // located
	copy(frame[26:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	frame[20] = 0x40 // don't fragment
	answered := func(sender uint32, now time.Duration) (n int) {
		for range 3 * abi.ErrorsAtOnce {
			_, answer, err := x.kernel.LeaveFrom(sender, "s", 10, frame, 0, now)
			if err != nil {
				t.Fatal(err)
			}
			if answer != nil {
				n++
			}
		}
		return n
	}
	for i, row := range []struct {
		sender uint32
		now    time.Duration
		want   int
	}{{1, time.Hour, abi.ErrorsAtOnce}, {1, time.Hour, 0}, {2, time.Hour, abi.ErrorsAtOnce},
		{1, time.Hour + 100*time.Millisecond, abi.ErrorsPerSecond / 10}, {0, 2 * time.Hour, 0},
		{1, 2 * time.Hour, abi.ErrorsAtOnce}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if got := answered(row.sender, row.now); got != row.want {
				t.Errorf("sender %d at %s: %d errors, want %d", row.sender, row.now, got, row.want)
			}
		})
	}
}
