package model

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/capture/dissect"
)

// TestPeopleAreShownThePacketThatTheSwitchReads compares the description of a frame with the model's reader, with which
// the kernel's is compared too: both follow the same extension headers, and treat the same packets as fragments.
func TestPeopleAreShownThePacketThatTheSwitchReads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 50_000 {
		f := withExtensions(r)
		want, kind := inWords(readPacket(f))
		seen[kind]++
		if line := dissect.Line(f, len(f)); !strings.Contains(line, want) {
			t.Fatalf("%x is shown as\n%s, want %q", f, line, want)
		}
	}
	for _, kind := range []string{"fragment", "UDP", "ICMPv6", "other"} {
		if seen[kind] < 1000 {
			t.Errorf("only %d frames are of the kind %s: %v", seen[kind], kind, seen)
		}
	}
}

// inWords is the expected description of an IPv6 packet, and its kind.
func inWords(p packet) (want, kind string) {
	src, dst := addressOf(p.src), addressOf(p.dst)
	switch {
	case p.later:
		return fmt.Sprintf("IPv6 %s > %s: fragment at ", src, dst), "fragment"
	case p.protocol == protoUDP && len(p.layer4) >= 8:
		at := func(a netip.Addr, b []byte) netip.AddrPort { return netip.AddrPortFrom(a, binary.BigEndian.Uint16(b)) }
		return fmt.Sprintf("IPv6 %s > %s: UDP", at(src, p.ports), at(dst, p.ports[2:])), "UDP"
	case p.icmp != nil:
		return fmt.Sprintf("IPv6 %s > %s: ICMPv6 ", src, dst), "ICMPv6"
	// by a header that lies; they have words of their own
	case slices.Contains([]uint8{1, 2, protoTCP, protoSCTP}, p.protocol):
		return "IPv6 ", "by chance"
	}
	return fmt.Sprintf("IPv6 %s > %s: protocol %d,", src, dst, p.protocol), "other"
}

// withExtensions is a frame of IPv6 with up to ten extension headers, some of which lie about their length, and some
// padding.
func withExtensions(r *rand.Rand) []byte {
	oneOf := func(list ...byte) byte { return list[r.IntN(len(list))] }
	next, body := oneOf(17, 17, 58, 58, 50, 59, 253), make([]byte, r.IntN(40))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	for range [...]int{0, 1, 1, 2, 3, 8, 9, 10}[r.IntN(8)] {
		number := oneOf(0, 43, 44, 44, 51, 60, 135, 139, 140)
		h := []byte{next, 0, 0, 0, 0, 0, 0, 0}
		switch {
		case number == 44:
			h[3] = oneOf(0, 0, 1, 8)
		case r.IntN(10) == 0:
			h[1] = oneOf(1, 2, 255)
		}
		next, body = number, append(h, body...)
	}
	length := max(0, len(body)-r.IntN(2)*r.IntN(12)+r.IntN(8)/7)
	head := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(length))
	addresses := slices.Concat(netip.MustParseAddr("2001:db8::1").AsSlice(),
		netip.MustParseAddr("2001:db8::2").AsSlice())
	return slices.Concat([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd}, head, []byte{next, 64}, addresses,
		body)
}
