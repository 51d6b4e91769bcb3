package model

import (
	"maps"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Counters are the counters of a port or uplink: the 18 counters of a VDS port under their names, and ours (S80, D7;
// frame-rules §7). "In" means into the switch.
type Counters struct {
	PacketsInUnicast    uint64 `json:"packetsInUnicast"`
	PacketsInMulticast  uint64 `json:"packetsInMulticast"`
	PacketsInBroadcast  uint64 `json:"packetsInBroadcast"`
	BytesInUnicast      uint64 `json:"bytesInUnicast"`
	BytesInMulticast    uint64 `json:"bytesInMulticast"`
	BytesInBroadcast    uint64 `json:"bytesInBroadcast"`
	PacketsOutUnicast   uint64 `json:"packetsOutUnicast"`
	PacketsOutMulticast uint64 `json:"packetsOutMulticast"`
	PacketsOutBroadcast uint64 `json:"packetsOutBroadcast"`
	BytesOutUnicast     uint64 `json:"bytesOutUnicast"`
	BytesOutMulticast   uint64 `json:"bytesOutMulticast"`
	BytesOutBroadcast   uint64 `json:"bytesOutBroadcast"`
	PacketsInDropped    uint64 `json:"packetsInDropped"`
	PacketsOutDropped   uint64 `json:"packetsOutDropped"`
	PacketsInException  uint64 `json:"packetsInException"`
	PacketsOutException uint64 `json:"packetsOutException"`
	BytesInFromPnic     uint64 `json:"bytesInFromPnic"`
	BytesOutToPnic      uint64 `json:"bytesOutToPnic"`

	Delivered     uint64 `json:"delivered"`     // frames from here of which a copy was handed over
	PacketsToHost uint64 `json:"packetsToHost"` // of an uplink: copies for the host's stack (S96)
	// For an uplink that carries the host's own traffic: the host's own frames that were looked up, those of them
	// that went to a port here instead of leaving, and those that such a port refused.
	PacketsFromHost        uint64 `json:"packetsFromHost"`
	PacketsFromHostKept    uint64 `json:"packetsFromHostKept"`
	PacketsFromHostDropped uint64 `json:"packetsFromHostDropped"`

	DropsIn    map[abi.Reason]uint64 `json:"dropsIn"`    // frames from here, dropped; nil when there is none
	RefusedOut map[abi.Reason]uint64 `json:"refusedOut"` // copies for here, refused; nil when there is none

	MACsLearned          uint64 `json:"macsLearned"` // entries held now
	MACMoves             uint64 `json:"macMoves"`    // entries that came from another port (S20)
	MACNotLearnedAllowed uint64 `json:"macNotLearnedAllowed"`
	MACNotLearnedDropped uint64 `json:"macNotLearnedDropped"`
	// UnknownNotFlooded are frames to unknown destinations that storm control kept from the ports, but not from the
	// uplink.
	UnknownNotFlooded uint64 `json:"unknownNotFlooded"`
	// UnknownFlooded are frames for unknown destinations that ports got a copy of.
	UnknownFlooded uint64 `json:"unknownFlooded"`
}

// tally counts for one port or uplink; it lives as long as the plan has the port.
type tally struct {
	packetsIn, bytesIn, packetsOut, bytesOut [3]uint64 // by class
	delivered, toHost                        uint64
	fromHost, fromHostKept, fromHostDropped  uint64
	bytesInFromPnic, bytesOutToPnic          uint64
	drops, refusals                          [abi.ReasonCount]uint64
	moves                                    uint64
	notLearnedAllowed, notLearnedDropped     uint64
	held                                     int // entries learned on the port
	notFlooded, flooded                      uint64
	buckets                                  [3]bucket // storm control, by class
	// packets to skip before the next one that is metered, by flow.Direction
	skip [2]int
}

func (t *tally) in(c class, n int) {
	t.packetsIn[c]++
	t.bytesIn[c] += uint64(n)
}

func (t *tally) out(c class, n int) {
	t.packetsOut[c]++
	t.bytesOut[c] += uint64(n)
}

func (t *tally) drop(r abi.Reason)   { t.drops[r]++ }
func (t *tally) refuse(r abi.Reason) { t.refusals[r]++ }

// counters converts the tally into its public form.
func (t *tally) counters() Counters {
	c := Counters{
		PacketsInUnicast: t.packetsIn[unicast], PacketsInMulticast: t.packetsIn[multicast],
		PacketsInBroadcast: t.packetsIn[broadcast], BytesInUnicast: t.bytesIn[unicast],
		BytesInMulticast: t.bytesIn[multicast], BytesInBroadcast: t.bytesIn[broadcast],
		PacketsOutUnicast: t.packetsOut[unicast], PacketsOutMulticast: t.packetsOut[multicast],
		PacketsOutBroadcast: t.packetsOut[broadcast], BytesOutUnicast: t.bytesOut[unicast],
		BytesOutMulticast: t.bytesOut[multicast], BytesOutBroadcast: t.bytesOut[broadcast],
		BytesInFromPnic: t.bytesInFromPnic, BytesOutToPnic: t.bytesOutToPnic,
		Delivered: t.delivered, PacketsToHost: t.toHost,
		PacketsFromHost: t.fromHost, PacketsFromHostKept: t.fromHostKept, PacketsFromHostDropped: t.fromHostDropped,
		MACsLearned: uint64(t.held), MACMoves: t.moves,
		MACNotLearnedAllowed: t.notLearnedAllowed, MACNotLearnedDropped: t.notLearnedDropped,
		UnknownNotFlooded: t.notFlooded, UnknownFlooded: t.flooded,
	}
	c.DropsIn, c.PacketsInDropped, c.PacketsInException = split(&t.drops, abi.ReasonMalformed)
	c.RefusedOut, c.PacketsOutDropped, c.PacketsOutException = split(&t.refusals, abi.ReasonDeviceRefused)
	return c
}

// split makes a map of counts by reason and returns their sum, with the count of the exception separately.
func split(counts *[abi.ReasonCount]uint64, exception abi.Reason) (by map[abi.Reason]uint64, dropped, excepted uint64) {
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if by == nil {
			by = map[abi.Reason]uint64{}
		}
		by[abi.Reason(i)] = n
		if abi.Reason(i) != exception {
			dropped += n
		}
	}
	return by, dropped, counts[exception]
}

// Counters returns the counters of every port and uplink of the plan.
func (h *Host) Counters() map[plan.PortID]Counters {
	all := make(map[plan.PortID]Counters, len(h.tallies))
	for id, t := range h.tallies {
		all[id] = t.counters()
	}
	return all
}

// tallyOf is the tally of a port or uplink; if the plan before had the port, it keeps its tally.
func (h *Host) tallyOf(id plan.PortID) *tally {
	t := h.tallies[id]
	if t == nil {
		t = &tally{}
		h.tallies[id] = t
	}
	return t
}

// dropTallies removes the counters of ports that are no longer in the plan.
func (h *Host) dropTallies() {
	maps.DeleteFunc(h.tallies, func(id plan.PortID, _ *tally) bool {
		_, there := h.places[id]
		return !there
	})
}
