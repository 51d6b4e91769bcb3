package captures

import (
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"heddle/internal/api"
)

// Offsets in an Ethernet frame without a tag, and numbers there.
const (
	atType      = 12
	atIP        = 14
	at4Fragment = atIP + 6
	at4Protocol = atIP + 9
	at4Source   = atIP + 12
	at6Protocol = atIP + 6
	at6Source   = atIP + 8
	at6UDP      = atIP + 40
	atVNI       = 8 + 4 // from the UDP header on: behind it and the flags of VXLAN (RFC 7348); 8 bits follow
	type4       = 0x0800
	type6       = 0x86dd
	protocolUDP = 17
	laterPart   = 0x1fff // of a fragmented packet: it has no UDP header
	vlanID      = 0x0fff
	filterRet   = 0x06 // return a constant (linux/filter.h)
)

var refuse = bpf.RetConstant{Val: 0}

// outerFilter returns the program of a socket that takes the packets of a tunnel: UDP to its port, from one of this
// host's endpoints if the device sends it, to one of them if it arrives. Who sends what arrives does not matter:
// packets of strangers are of interest. After that the packet must have one of the VNIs, if there are any, and pass the
// user's filter, if there is one. snap is how many bytes are wanted at most.
//
// A frame with a VLAN tag is not the device's own but that of a VLAN's device on top of it, which has a socket itself
// if an endpoint is there; VLAN 0 is only a priority.
func outerFilter(own []netip.Addr, port uint16, vnis []uint32, also []api.FilterInstruction,
	snap int) []bpf.Instruction {
	var own4, own6 [][]byte
	for _, a := range own {
		if a.Is4() {
			own4 = append(own4, a.AsSlice())
		} else {
			own6 = append(own6, a.AsSlice())
		}
	}
	v4 := join(equal(at4Protocol, 1, protocolUDP),
		[]bpf.Instruction{
			bpf.LoadAbsolute{Off: at4Fragment, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: laterPart, SkipTrue: 1}, refuse,
			bpf.LoadMemShift{Off: atIP},
			bpf.LoadIndirect{Off: atIP + 2, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(port), SkipTrue: 1}, refuse,
		}, oneVNI(bpf.LoadIndirect{Off: atIP + atVNI, Size: 4}, vnis),
		between(oneOf(at4Source, own4), oneOf(at4Source+4, own4)))
	v6 := join(equal(atType, 2, type6), equal(at6Protocol, 1, protocolUDP), equal(at6UDP+2, 2, uint32(port)),
		oneVNI(bpf.LoadAbsolute{Off: at6UDP + atVNI, Size: 4}, vnis),
		between(oneOf(at6Source, own6), oneOf(at6Source+16, own6)))
	p := join([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtVLANTag},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: vlanID, SkipTrue: 1}, refuse,
	}, either([]bpf.Instruction{bpf.LoadAbsolute{Off: atType, Size: 2}}, type4, v4, v6))
	if len(also) == 0 {
		return append(p, bpf.RetConstant{Val: uint32(snap)})
	}
	for _, in := range also {
		if in.Code == filterRet && in.K != 0 {
			in.K = uint32(snap)
		}
		p = append(p, bpf.RawInstruction{Op: in.Code, Jt: in.JumpTrue, Jf: in.JumpFalse, K: in.K})
	}
	return p
}

func join(parts ...[]bpf.Instruction) (p []bpf.Instruction) {
	for _, part := range parts {
		p = append(p, part...)
	}
	return p
}

// equal refuses the frame unless it has the value at the offset.
func equal(at uint32, size int, value uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadAbsolute{Off: at, Size: size},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: 1}, refuse}
}

// between refuses a frame that the device sends unless it passes out, and another one unless it passes in.
func between(out, in []bpf.Instruction) []bpf.Instruction {
	return either([]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtType}}, unix.PACKET_OUTGOING, out, in)
}

// either runs one part if what was loaded has the value, and the other if not.
func either(load []bpf.Instruction, value uint32, one, other []bpf.Instruction) []bpf.Instruction {
	return join(load, []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(one)) + 1}}, one, []bpf.Instruction{bpf.Jump{Skip: uint32(len(other))}}, other)
}

// oneOf refuses the frame unless one of the addresses is at the offset.
func oneOf(at uint32, addresses [][]byte) (p []bpf.Instruction) {
	p = []bpf.Instruction{refuse}
	for _, a := range addresses {
		var one []bpf.Instruction
		for i := 0; i < len(a); i += 4 {
			word := uint32(a[i])<<24 | uint32(a[i+1])<<16 | uint32(a[i+2])<<8 | uint32(a[i+3])
			left := 2*(len(a)-i)/4 - 1 // instructions of this address after this word's
			one = append(one, bpf.LoadAbsolute{Off: at + uint32(i), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: word, SkipTrue: uint8(left)})
		}
		p = join(one, []bpf.Instruction{bpf.Jump{Skip: uint32(len(p))}}, p)
	}
	return p
}

// oneVNI refuses the frame unless what is loaded is one of the VNIs, with 8 bits behind it. Without VNIs any will do.
func oneVNI(load bpf.Instruction, vnis []uint32) (p []bpf.Instruction) {
	if len(vnis) == 0 {
		return nil
	}
	p = []bpf.Instruction{refuse}
	for _, vni := range vnis {
		p = join([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: vni, SkipTrue: 1},
			bpf.Jump{Skip: uint32(len(p))}}, p)
	}
	return join([]bpf.Instruction{load, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 8}}, p)
}
