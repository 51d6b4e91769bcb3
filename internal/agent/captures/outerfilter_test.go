package captures

import (
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"

	"heddle/internal/api"
)

// outerPacket is a UDP packet to a port.
func outerPacket(from, to netip.Addr, port uint16) []byte {
	f := make([]byte, 12)
	if from.Is4() {
		f = append(f, 8, 0, 0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0)
	} else {
		f = append(f, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 17, 64)
	}
	f = append(append(f, from.AsSlice()...), to.AsSlice()...)
	return append(f, 0xc0, 0, byte(port>>8), byte(port), 0, 16, 0, 0, 8, 0, 0, 0, 0, 0x13, 0x88, 0)
}

// TestOuterFilter_TakesTheTunnelsPacketsAlone runs what is attached to a socket, for packets that arrive and that
// leave.
func TestOuterFilter_TakesTheTunnelsPacketsAlone(t *testing.T) {
	a4, b4 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	a6, b6 := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	far4, far6 := netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db9::1")
	own := []netip.Addr{a4, a6, b4, b6}
	later := outerPacket(far4, a4, 4789)
	later[21] = 1
	tcp := outerPacket(far4, a4, 4789)
	tcp[23] = 6
	long := outerPacket(far4, a4, 4789)
	long[14] = 0x46 // options: the port is elsewhere
	for _, c := range []struct {
		name   string
		own    []netip.Addr
		packet []byte
		out    bool
		want   bool
	}{
		{"IPv4 arrives", own, outerPacket(far4, a4, 4789), false, true},
		{"IPv4 arrives at the other endpoint", own, outerPacket(far4, b4, 4789), false, true},
		{"IPv6 arrives", own, outerPacket(far6, a6, 4789), false, true},
		{"IPv6 arrives at the other endpoint", own, outerPacket(far6, b6, 4789), false, true},
		{"IPv4 leaves", own, outerPacket(a4, far4, 4789), true, true},
		{"IPv6 leaves", own, outerPacket(b6, far6, 4789), true, true},
		{"another's arrives", own, outerPacket(a4, far4, 4789), false, false},
		{"another's of IPv6 arrives", own, outerPacket(a6, far6, 4789), false, false},
		{"another's leaves", own, outerPacket(far4, a4, 4789), true, false},
		{"another port", own, outerPacket(far4, a4, 4790), false, false},
		{"another port of IPv6", own, outerPacket(far6, a6, 53), false, false},
		{"no endpoint of IPv6", own[:1], outerPacket(far6, a6, 4789), false, false},
		{"no endpoint of IPv4", own[1:2], outerPacket(far4, a4, 4789), false, false},
		{"a later part", own, later, false, false},
		{"TCP", own, tcp, false, false},
		{"options", own, long, false, false},
		{"short", own, outerPacket(far4, a4, 4789)[:30], false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := runs(t, outerFilter(c.own, 4789, nil, nil, 96), c.packet, c.out); got > 0 != c.want ||
				c.want && got != min(96, len(c.packet)) {
				t.Errorf("takes %d bytes, want some: %v", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		name string
		vnis []uint32
		want bool
	}{{"its VNI", []uint32{5000}, true}, {"one of several", []uint32{1, 5000, 16777214}, true},
		{"others", []uint32{1, 5001, 0x138800}, false}} {
		for _, a := range []netip.Addr{a4, a6} {
			t.Run(c.name+" to "+a.String(), func(t *testing.T) {
				far := map[bool]netip.Addr{true: far4, false: far6}[a.Is4()]
				if got := runs(t, outerFilter(own, 4789, c.vnis, nil, 96), outerPacket(far, a, 4789), false); got > 0 !=
					c.want {
					t.Errorf("takes %d bytes, want some: %v", got, c.want)
				}
			})
		}
	}
	vni := func(n uint32) []api.FilterInstruction { // ld [46]; jeq n; ret
		return []api.FilterInstruction{{Code: 0x20, K: 46}, {Code: 0x15, JumpFalse: 1, K: n << 8}, {Code: 6, K: 262144},
			{Code: 6}}
	}
	if runs(t, outerFilter(own, 4789, nil, vni(5000), 20), outerPacket(far4, a4, 4789), false) != 20 {
		t.Error("the user's filter accepts, and the packet is not cut to the wanted bytes")
	}
	if runs(t, outerFilter(own, 4789, nil, vni(5001), 20), outerPacket(far4, a4, 4789), false) != 0 {
		t.Error("the user's filter refuses, and the packet is taken")
	}
}

// runs returns how many bytes the program takes. The virtual machine knows no metadata: they are put in as constants.
func runs(t *testing.T, p []bpf.Instruction, packet []byte, out bool) int {
	t.Helper()
	kind := uint32(0)
	if out {
		kind = 4 // PACKET_OUTGOING
	}
	q := make([]bpf.Instruction, len(p))
	for i, in := range p {
		if x, ok := in.(bpf.LoadExtension); ok {
			in = bpf.LoadConstant{Dst: bpf.RegA}
			if x.Num == bpf.ExtType {
				in = bpf.LoadConstant{Dst: bpf.RegA, Val: kind}
			}
		}
		if raw, ok := in.(bpf.RawInstruction); ok {
			in = raw.Disassemble()
		}
		q[i] = in
	}
	if _, err := bpf.Assemble(p); err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(q)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return min(n, len(packet))
}
