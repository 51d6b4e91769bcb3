package difftest

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"heddle/internal/spec"
)

// crossingFrame makes a frame that is right, or nearly.
func crossingFrame(random *rand.Rand, whole bool) []byte {
	pick := func(list ...[]byte) []byte { return list[random.IntN(len(list))] }
	mac := func() []byte { return []byte{2, 0, 0, 0, 0, byte(random.IntN(9))} }
	frame := append([]byte{}, pick(mac(), mac(), mac(), mac(), []byte{255, 255, 255, 255, 255, 255},
		[]byte{1, 0, 0x5e, 0, 0, 9}, []byte{1, 0x80, 0xc2, 0, 0, byte(random.IntN(32))}, []byte{0, 0, 0, 0, 0, 0})...)
	frame = append(frame, pick(mac(), mac(), mac(), mac(), []byte{3, 0, 0, 0, 0, 1}, make([]byte, 6))...)
	tag := func() []byte {
		t := binary.BigEndian.AppendUint16(nil, []uint16{0x8100, 0x8100, 0x8100, 0x88a8}[random.IntN(4)])
		return binary.BigEndian.AppendUint16(t, []uint16{7, 7, 0, 8, 4094}[random.IntN(5)]|uint16(random.IntN(16))<<12)
	}
	for range []int{0, 0, 1, 1, 2, 3}[random.IntN(6)] {
		frame = append(frame, tag()...)
	}
	frame = append(frame, pick([]byte{8, 0}, []byte{0x86, 0xdd}, []byte{8, 6}, []byte{0x88, 0xb5})...)
	length := pick2(random, 46, 46, 1426, 1430, 1448, 1450, 1478, 1482, 1500, 1550, 3000) + random.IntN(5) - 2
	for range length {
		frame = append(frame, byte(random.IntN(256)))
	}
	if !whole && random.IntN(4) == 0 {
		frame = frame[:15+random.IntN(14)]
	}
	return fit(frame)
}

// fit makes a frame one that the kernel takes in a test run, which gets it without its first tag.
func fit(frame []byte) []byte {
	if !tagged(frame) {
		return runnable(frame)
	}
	for len(frame) < 20 {
		frame = append(frame, 0)
	}
	runnable(frame[4:])
	return frame
}

func pick2(random *rand.Rand, list ...int) int { return list[random.IntN(len(list))] }

// FuzzCrossing gives any bytes to a tunnel, in both directions.
func FuzzCrossing(f *testing.F) {
	if os.Geteuid() != 0 {
		f.Skip("the kernel program needs root")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		f.Add(byte(random.IntN(256)), uint32(10), crossingFrame(random, false))
	}
	x := newCrossers(f, spec.ReplicateTwoTier)
	x.set(f, crossingFacts()[0], x.reaches()[0])
	senders := []netip.Addr{netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8::3"),
		netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("192.0.2.1")}
	f.Fuzz(func(t *testing.T, way byte, vni uint32, frame []byte) {
		vni &= 1<<24 - 1
		if len(frame) < 15 || len(frame) > 3500 {
			return // test runs take no others
		}
		if way&4 == 0 {
			x.arrive(t, senders[way&3], vni, fit(slices.Clone(frame)))
			return
		}
		if len(frame) < 14+8+40 { // the switch hands on none that ends within its tag
			return
		}
		x.leave(t, vni, leavable(slices.Clone(frame)))
	})
}
