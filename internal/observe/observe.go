package observe

import (
	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Counters are a port's or uplink's counters since it got its slot (docs/reference/frame-rules.md §7). Index of the
// arrays: abi.ClassUnicast, abi.ClassMulticast, abi.ClassBroadcast.
type Counters struct {
	PacketsIn, BytesIn, PacketsOut, BytesOut [abi.Classes]uint64
	BytesInFromPnic, BytesOutToPnic          uint64
	Delivered, PacketsToHost                 uint64
	// For an uplink that carries the host's own traffic: the host's own frames that were looked up; those of them
	// that went to a port here instead of leaving; those that such a port refused.
	PacketsFromHost, PacketsFromHostKept, PacketsFromHostDropped uint64
	MACMoves, MACNotLearnedAllowed, MACsHeld                     uint64
	// UnknownNotFlooded are frames to unknown destinations that storm control kept from the ports, but not from the
	// uplink.
	UnknownNotFlooded uint64
	// UnknownFlooded are frames for unknown destinations of which ports got a copy.
	UnknownFlooded uint64
	Drops, Refused map[abi.Reason]uint64
}

// Received is the number of frames received from the port. Received = Delivered + every drop (S94).
func (c *Counters) Received() uint64 { return total(c.PacketsIn) }

// Dropped is the number of frames received from the port that were dropped.
func (c *Counters) Dropped() uint64 { return all(c.Drops) }

// PacketsInException is the malformed part of Dropped.
func (c *Counters) PacketsInException() uint64 { return c.Drops[abi.ReasonMalformed] }

// PacketsInDropped is Dropped without PacketsInException.
func (c *Counters) PacketsInDropped() uint64 { return c.Dropped() - c.PacketsInException() }

// PacketsOutException counts copies that the device itself did not accept.
func (c *Counters) PacketsOutException() uint64 { return c.Refused[abi.ReasonDeviceRefused] }

// PacketsOutDropped counts the other copies refused for this receiver.
func (c *Counters) PacketsOutDropped() uint64 { return all(c.Refused) - c.PacketsOutException() }

func total(classes [abi.Classes]uint64) uint64 {
	return classes[abi.ClassUnicast] + classes[abi.ClassMulticast] + classes[abi.ClassBroadcast]
}

func all(m map[abi.Reason]uint64) uint64 {
	var n uint64
	for _, v := range m {
		n += v
	}
	return n
}

// MACEntry is one learned MAC.
type MACEntry struct {
	Switch string
	VNI    uint32 // of an overlay segment, in which the VLAN then is; 0 = none
	VLAN   uint16 // 0 = untagged segment
	AD     bool   // the VLAN is an 802.1ad one
	MAC    plan.MAC
	Port   plan.PortID
	Idle   float64 // seconds since it was last heard
}
