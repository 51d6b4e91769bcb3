package migration

import (
	"golang.org/x/sys/unix"

	"heddle/internal/spec"
)

// network is where the hosts of a row meet.
type network struct {
	// wires is the physical switch between the hosts, far the node of the guest's peer.
	wires, far string
	// head is how many bytes there are on the wire before a frame of the guest: the tunnel's headers.
	head int
}

// tunnelHead is Ethernet, IPv4, UDP and VXLAN (RFC 7348).
const tunnelHead = 14 + 20 + 8 + 8

// field is a value of size bytes in a frame.
type field struct{ offset, size, value int }

// tunnelled are what frames of a tunnel have in common: UDP over IPv4 to the tunnels' port.
func tunnelled() []field {
	return []field{{12, 2, unix.ETH_P_IP}, {23, 1, unix.IPPROTO_UDP}, {36, 2, spec.DefaultTunnelPort}}
}

// frames is a filter of a packet socket that lets the frames of guests through; nil for all.
func (n network) frames() []unix.SockFilter {
	if n.head == 0 {
		return nil
	}
	return having(tunnelled())
}

// rarps lets nothing but RARP through, so that other frames cost little.
func (n network) rarps() []unix.SockFilter {
	want := []field{{n.head + 12, 2, unix.ETH_P_RARP}}
	if n.head > 0 {
		want = append(tunnelled(), want...)
	}
	return having(want)
}

// having is a filter that lets frames with these fields through.
func having(want []field) (filter []unix.SockFilter) {
	const all = 1 << 18
	size := map[int]uint16{1: unix.BPF_B, 2: unix.BPF_H}
	for i, f := range want {
		refuse := uint8(2*(len(want)-i) - 1) // what lies between this and the last instruction
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_LD | size[f.size] | unix.BPF_ABS, K: uint32(f.offset)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(f.value), Jf: refuse})
	}
	return append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: all},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K})
}
