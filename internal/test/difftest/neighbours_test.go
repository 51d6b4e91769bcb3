package difftest

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// TestS85_TheModelAndTheKernelAgreeOnNeighbours: random ARP and neighbour discovery leaves by and arrives from a
// tunnel, right, mutated and truncated, of few stations that take each other's addresses, with what controllers
// tell. Who is asked, what is answered and by which bytes, and what is counted, are the same.
func TestS85_TheModelAndTheKernelAgreeOnNeighbours(t *testing.T) {
	testkit.Long(t, "compares many random cases; TestRegressions and TestS84_TheModelAndTheKernelAgreeOnOverlays "+
		"have fewer")
	testkit.Root(t)
	seed := uint64(time.Now().Unix() / 86400)
	for i, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) { agreeOnNeighbours(t, seed+uint64(i)) })
	}
}

// talkers are crossers whose tunnel answers.
type talkers struct {
	*crossers
	random *rand.Rand
	seen   map[abi.Reason]int
	// doubted are the addresses that were unverified after the frame before; unverified is how often one was, and
	// settledBy how often one became sure and kept its owner.
	doubted               map[overlay.Address]plan.MAC
	unverified, settledBy int
}

// doubts counts what became of bindings that are not sure.
func (x *talkers) doubts() {
	heard, now := x.model.Tables().Heard, map[overlay.Address]plan.MAC{}
	for at, h := range heard {
		if h.Unverified {
			now[at] = h.MAC
			x.unverified++
		}
	}
	for at, mac := range x.doubted {
		if h, there := heard[at]; there && !h.Unverified && h.MAC == mac {
			x.settledBy++
		}
	}
	x.doubted = now
}

func agreeOnNeighbours(t *testing.T, seed uint64) {
	x := &talkers{crossers: newCrossers(t, spec.ReplicateHead), random: rand.New(rand.NewPCG(seed, 85)),
		seen: map[abi.Reason]int{}}
	tunnel := x.desired.Plan.Switches[0].Tunnel
	tunnel.Hold = 30 * time.Second
	x.set(t, crossingFacts()[0], x.reaches()[0])
	for i := range 10000 {
		rush := i%2500 > 2000 // many frames at one instant
		if i%2500 == 2000 {
			x.settleOwners(t)
		}
		if !rush {
			x.now += time.Duration(x.random.IntN(120)) * time.Millisecond
		}
		x.one(t, rush)
		x.sameTables(t)
		x.doubts()
	}
	x.settled(t)
	if x.unverified == 0 || x.settledBy == 0 {
		t.Errorf("seed %d: %d bindings were unverified and %d became sure", seed, x.unverified, x.settledBy)
	}
	for _, why := range []abi.Reason{abi.ReasonNone, abi.ReasonNeighbourAnswered, abi.ReasonNeighbourHere,
		abi.ReasonNeighbourLimit} {
		if x.seen[why] == 0 {
			t.Errorf("seed %d: no frame with the outcome %q: %v", seed, why, x.seen)
		}
	}
}

// settleOwners has all addresses forgotten, and the far stations say which ones they have: who asks then is answered.
func (x *talkers) settleOwners(t *testing.T) {
	t.Helper()
	x.now += 31 * time.Second
	for n := byte(4); n <= 6; n++ {
		a := netip.AddrFrom4([4]byte{10, 0, 0, n})
		x.arrive(t, netip.MustParseAddr("198.51.100.2"), 10, x.arp(plan.MAC{2, 5: n}, a, a, true))
	}
}

// one is a frame out or in, or a controller's word; in a rush there is no time between frames.
func (x *talkers) one(t *testing.T, rush bool) {
	t.Helper()
	segment := model.Segment{VNI: 10, VLAN: []uint16{0, 0, 7}[x.random.IntN(3)]}
	if rush {
		segment.VLAN = 0
		for range 12 {
			x.leaves(t, segment, x.frame(true, false))
		}
		return
	}
	what := x.random.IntN(12)
	frame := x.frame(false, what < 5 != (x.random.IntN(200) == 0))
	switch what {
	case 0:
		b := overlay.Binding{Address: overlay.Address{VNI: 10, IP: x.address(x.random.IntN(2) == 0)},
			MAC: plan.MAC{2, 5: byte(4 + x.random.IntN(3))}, Age: time.Duration(x.random.IntN(40)) * time.Second}
		if b.Age >= x.now {
			b.Age = 0
		}
		x.model.Bind(false, []overlay.Binding{b}, nil, x.now)
		if err := x.kernel.Bind("s", false, []overlay.Binding{b}, nil, x.now); err != nil {
			t.Fatal(err)
		}
	case 1, 2, 3, 4:
		from := netip.MustParseAddr([]string{"198.51.100.2", "192.0.2.5", "203.0.113.99"}[x.random.IntN(3)])
		x.arrive(t, from, 10, withTag(frame, segment.VLAN))
	default:
		x.leaves(t, segment, frame)
	}
}

// leaves hands a frame out.
func (x *talkers) leaves(t *testing.T, s model.Segment, frame []byte) {
	t.Helper()
	x.seen[x.leaveNow(t, s.VNI, withTag(frame, s.VLAN))[0].Reason]++
}

func withTag(frame []byte, vlan uint16) []byte {
	if vlan == 0 {
		return frame
	}
	return slices.Concat(frame[:12], []byte{0x81, 0, byte(vlan >> 8), byte(vlan)}, frame[12:])
}

func (x *talkers) mac() plan.MAC { return plan.MAC{2, 0, 0, 0, 0, byte(1 + x.random.IntN(3))} }

func (x *talkers) address(v6 bool) netip.Addr {
	n := byte(1 + x.random.IntN(6))
	if v6 {
		return netip.AddrFrom16([16]byte{0xfd, 15: n})
	}
	return netip.AddrFrom4([4]byte{10, 0, 0, n})
}

// frame is one of ARP or neighbour discovery, of a station of this host or a far one. A plain one asks for an
// address.
func (x *talkers) frame(plain, far bool) []byte {
	v6, from, own := x.random.IntN(2) == 0, x.mac(), plain || x.random.IntN(60) > 0
	if far {
		from[5] += 3
	}
	sender, target := x.address(v6), x.address(v6)
	if own { // most stations keep their address
		last := sender.AsSlice()
		last[len(last)-1] = from[5]
		sender, _ = netip.AddrFromSlice(last)
	}
	var f []byte
	if v6 {
		f = x.nd(from, sender, target, plain)
	} else {
		f = x.arp(from, sender, target, plain)
	}
	if !plain && x.random.IntN(6) == 0 {
		f[6+x.random.IntN(len(f)-6)] ^= byte(1 << x.random.IntN(8))
	}
	if !plain && x.random.IntN(20) == 0 {
		f = f[:54+x.random.IntN(len(f)-53)] // a test run refuses a cut header of IP
	}
	if binary.BigEndian.Uint16(f[12:]) == 0x8100 || binary.BigEndian.Uint16(f[12:]) == 0x88a8 {
		f[12] = 8 // the switch has taken the tag out
	}
	return f
}

func (x *talkers) arp(from plan.MAC, sender, target netip.Addr, plain bool) []byte {
	operation, to := byte(1), []byte{255, 255, 255, 255, 255, 255}
	if !plain {
		switch x.random.IntN(7) {
		case 0:
			operation = 2
		case 1:
			mac := x.mac()
			to = mac[:]
		case 2:
			sender = netip.IPv4Unspecified()
		case 3, 4: // an answer
			mac := x.mac()
			operation, to = 2, mac[:]
		}
	}
	return slices.Concat(to, from[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, operation}, from[:], sender.AsSlice(),
		make([]byte, 6), target.AsSlice(), make([]byte, 18))
}

func (x *talkers) nd(from plan.MAC, sender, target netip.Addr, plain bool) []byte {
	kind, option, flags, to := byte(135), byte(1), byte(0), netip.MustParseAddr("ff02::1:ff00:1")
	station, bare := []byte{0x33, 0x33, 0xff, 0, 0, 1}, false
	if !plain {
		switch x.random.IntN(8) {
		case 0, 1:
			kind, option, flags, target = 136, 2, []byte{0x20, 0x60, 0xa0, 0}[x.random.IntN(4)], sender
		case 2:
			sender = netip.IPv6Unspecified()
		case 3:
			to = target
		case 4: // a probe as guests send it
			sender, bare = netip.IPv6Unspecified(), true
		case 5, 6: // an answer
			mac := x.mac()
			kind, option, flags, target, station = 136, 2, 0x60, sender, mac[:]
		}
	}
	source, destination, asked := sender.As16(), to.As16(), target.As16()
	length, last := byte(32), slices.Concat([]byte{option, 1}, from[:])
	if bare {
		length, last = 24, nil
	}
	return slices.Concat(station, from[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, length, 58, 255}, source[:],
		destination[:], []byte{kind, 0, 0x12, 0x34, flags, 0, 0, 0}, asked[:], last)
}
