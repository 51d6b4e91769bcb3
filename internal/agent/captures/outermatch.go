package captures

import "heddle/internal/api"

// A filter of outer packets that asks about something else, such as "tcp port 443" of the frames inside, compiles and
// matches nothing. Whether it can match is found by running it on what all packets of a tunnel have in common, with
// everything else unknown.

// partly is a value of which the bits of known are those of bits; the others are unknown and 0 in bits.
type partly struct{ bits, known uint32 }

const allBits = 0xffffffff

func exactly(v uint32) partly { return partly{v, allBits} }

// least and most are the bounds of the value.
func (p partly) least() uint32 { return p.bits }
func (p partly) most() uint32  { return p.bits | ^p.known }

// knownBytes are bytes of a packet by their offset, and which of their bits are known.
type knownBytes map[uint32]struct{ bits, known byte }

// load reads size bytes in network byte order.
func (k knownBytes) load(at uint32, size int) (p partly) {
	for i := range size {
		b := k[at+uint32(i)]
		p = partly{p.bits<<8 | uint32(b.bits), p.known<<8 | uint32(b.known)}
	}
	if size < 4 {
		p.known |= allBits << (8 * size)
	}
	return p
}

// outerBytes are what packets of UDP to the port over IPv4 or IPv6 have in common, without a tag and without options of
// IP. Those of IPv4 are no later parts of a fragmented packet.
func outerBytes(port uint16) (v4, v6 knownBytes) {
	high, low := byte(port>>8), byte(port)
	v4 = knownBytes{atType: {0x08, 0xff}, atType + 1: {0x00, 0xff}, atIP: {0x45, 0xff},
		at4Fragment: {0, laterPart >> 8}, at4Fragment + 1: {0, laterPart & 0xff}, at4Protocol: {protocolUDP, 0xff},
		atIP + 22: {high, 0xff}, atIP + 23: {low, 0xff}}
	v6 = knownBytes{atType: {0x86, 0xff}, atType + 1: {0xdd, 0xff}, atIP: {0x60, 0xf0},
		at6Protocol: {protocolUDP, 0xff}, at6UDP + 2: {high, 0xff}, at6UDP + 3: {low, 0xff}}
	return v4, v6
}

// mayMatch reports whether a packet of a tunnel may pass the filter, which dataplane.CheckFilter has accepted. True
// where that can't be told; also without a filter.
func mayMatch(f []api.FilterInstruction, port uint16) bool {
	if len(f) == 0 {
		return true
	}
	v4, v6 := outerBytes(port)
	for _, packet := range []knownBytes{v4, v6} {
		m := &matching{filter: f, packet: packet, left: matchingSteps}
		if m.from(0, partly{}, partly{}) {
			return true
		}
	}
	return false
}

// matchingSteps bounds how many instructions are run, on all ways through the filter together.
const matchingSteps = 1 << 16

// matching runs a filter on all ways that it may take.
type matching struct {
	filter []api.FilterInstruction
	packet knownBytes
	left   int
}

// Parts of an instruction's code (linux/bpf_common.h).
const (
	classLoad, classLoadX, classALU, classJump, classReturn, classMisc = 0, 1, 4, 5, 6, 7

	sourceX = 0x08
)

// from reports whether the filter may accept from instruction i on.
func (m *matching) from(i int, a, x partly) bool {
	for ; i < len(m.filter); i++ {
		if m.left--; m.left < 0 {
			return true
		}
		in := m.filter[i]
		k := exactly(in.K)
		if in.Code&sourceX != 0 {
			k = x
		}
		switch in.Code & 0x07 {
		case classLoad:
			a = m.load(in, x)
		case classLoadX:
			x = m.loadX(in)
		case classALU:
			a = computed(in.Code, a, k)
		case classMisc:
			if in.Code&0x80 != 0 {
				a = x
			} else {
				x = a
			}
		case classReturn:
			if in.Code&0x18 != 0 {
				return a.most() > 0
			}
			return in.K > 0
		case classJump:
			if in.Code&0xf0 == 0 {
				i += int(in.K)
				continue
			}
			yes, no := outcomes(in.Code, a, k)
			if yes && no && m.from(i+1+int(in.JumpTrue), a, x) {
				return true
			}
			if no {
				i += int(in.JumpFalse)
			} else {
				i += int(in.JumpTrue)
			}
		}
	}
	return false
}

// load is what an instruction loads into A.
func (m *matching) load(in api.FilterInstruction, x partly) partly {
	size := map[uint16]int{0x00: 4, 0x08: 2, 0x10: 1}[in.Code&0x18]
	switch in.Code & 0xe0 {
	case 0x00:
		return exactly(in.K)
	case 0x20:
		return m.packet.load(in.K, size)
	case 0x40:
		if x.known == allBits {
			return m.packet.load(x.bits+in.K, size)
		}
	}
	return partly{}
}

// loadX is what an instruction loads into X.
func (m *matching) loadX(in api.FilterInstruction) partly {
	switch in.Code & 0xe0 {
	case 0x00:
		return exactly(in.K)
	case 0xa0: // the length of an IPv4 header
		if b := m.packet.load(in.K, 1); b.known&0x0f == 0x0f {
			return exactly(4 * (b.bits & 0x0f))
		}
	}
	return partly{}
}

// computed is what an operation makes of A. Those that filters seldom have leave nothing known.
func computed(code uint16, a, k partly) partly {
	switch code & 0xf0 {
	case 0x50: // and
		return partly{a.bits & k.bits, a.known&k.known | k.known&^k.bits | a.known&^a.bits}
	case 0x40: // or
		return partly{a.bits | k.bits, a.known&k.known | k.bits | a.bits}
	case 0x60, 0x70: // left, right shift
		if k.known == allBits && k.bits < 32 {
			if code&0xf0 == 0x60 {
				return partly{a.bits << k.bits, a.known<<k.bits | (1<<k.bits - 1)}
			}
			return partly{a.bits >> k.bits, a.known>>k.bits | ^(uint32(allBits) >> k.bits)}
		}
	case 0x00, 0x10: // add, subtract
		if a.known == allBits && k.known == allBits {
			if code&0xf0 == 0 {
				return exactly(a.bits + k.bits)
			}
			return exactly(a.bits - k.bits)
		}
	}
	return partly{}
}

// outcomes reports how a comparison may end.
func outcomes(code uint16, a, k partly) (yes, no bool) {
	both := a.known & k.known
	switch code & 0xf0 {
	case 0x10: // equal
		yes = a.bits&both == k.bits&both
		return yes, !yes || a.known != allBits || k.known != allBits
	case 0x20: // greater
		return a.most() > k.least(), a.least() <= k.most()
	case 0x30: // greater or equal
		return a.most() >= k.least(), a.least() < k.most()
	default: // a common bit
		return a.most()&k.most() != 0, a.bits&k.bits == 0
	}
}
