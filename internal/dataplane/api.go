// Package dataplane turns a plan and the host's devices into tables and programs in the kernel: it compiles, loads, pins,
// attaches, applies differences, and reads counters and learned MACs. Everything it puts into the kernel goes on working
// without any process.
package dataplane

//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-global-types -cflags "-I../../bpf -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -mcpu=v3" vswitch ../../bpf/switch.bpf.c
//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-global-types -cflags "-I../../bpf -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -mcpu=v3" capturing ../../bpf/capturing.bpf.c

import (
	"log/slog"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Attachment is how the kernel reaches a port's device.
type Attachment struct {
	Ifindex uint32
	// PeerRedirect: a veth whose other end is in another network namespace and can be handed frames directly (K13).
	PeerRedirect bool
}

// Desired is what the kernel shall do: the plan, what is known of the devices, and where they are. A port without a Fact or
// without an Attachment is not connected.
type Desired struct {
	Plan        *plan.Plan
	Facts       plan.Facts
	Attachments map[plan.PortID]Attachment
}

// Options say where an instance lives.
type Options struct {
	// PinDir is a directory of this agent alone on a mounted bpffs; created when missing.
	PinDir string
	// MACTable is how many learned MACs the table holds, 0 = the default (spec.HostSettings).
	MACTable int
	Log      *slog.Logger
}

// Counters are a port's or uplink's counters since it got its slot (docs/reference/frame-rules.md §7). Index of the arrays:
// abi.ClassUnicast, abi.ClassMulticast, abi.ClassBroadcast.
type Counters struct {
	PacketsIn, BytesIn, PacketsOut, BytesOut [abi.Classes]uint64
	BytesInFromPnic, BytesOutToPnic          uint64
	Delivered, PacketsToHost                 uint64
	// Of an uplink that carries the host's own traffic: frames of the host's own that were looked up; those of them that were for a
	// port here and did not leave; those that such a port refused.
	PacketsFromHost, PacketsFromHostKept, PacketsFromHostDropped uint64
	MACMoves, MACNotLearnedAllowed, MACsHeld                     uint64
	// UnknownNotFlooded are frames for unknown destinations that storm control kept from the ports, and not from the uplink.
	UnknownNotFlooded uint64
	Drops, Refused    map[abi.Reason]uint64
}

// MACEntry is one learned MAC.
type MACEntry struct {
	Switch string
	VLAN   uint16 // 0 = untagged segment
	AD     bool   // the VLAN is an 802.1ad one
	MAC    plan.MAC
	Port   plan.PortID
	Idle   float64 // seconds since it was last heard
}
