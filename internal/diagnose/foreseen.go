package diagnose

import (
	"net/netip"

	"heddle/internal/plan"
)

// Foreseen says which of the frames that ports sent lately a change of the plan would newly lose.
type Foreseen struct {
	// Losses are what would be lost, the most frames first; at most MaxLosses. More is how many are not listed.
	Losses []Loss `json:"losses"`
	More   int    `json:"more"`
	// Looked is how many senders were looked at: a sender is what a port sends with one source, in one VLAN, to one
	// destination. Left is how many were not, because there are more than are looked at.
	Looked int `json:"looked"`
	Left   int `json:"left"`
	// Counted is how many ports sent frames of which no more is known than their number: for them, frames from the
	// port's own MAC were looked at.
	Counted int `json:"counted"`
}

// MaxLosses bounds how many losses one host reports.
const MaxLosses = 128

// Loss is what would be lost of one sender.
type Loss struct {
	Switch    string `json:"switch"`
	Port      string `json:"port"`
	PortGroup string `json:"portGroup"`
	// MAC is the source, VLAN the segment in which the frames are sent now, Address the source IP address if it is
	// known.
	MAC     plan.MAC     `json:"mac"`
	VLAN    plan.Segment `json:"vlan"`
	Address netip.Addr   `json:"address,omitzero"`
	// To is the port or uplink that gets the frames now and would not any more; "" if they would be dropped.
	To string `json:"to,omitempty"`
	// Frames is how many there were in the last Seconds; 0 seconds: since the port was connected. OfPort says that it
	// is the number of all frames of the port, since nobody knows how many of them are meant.
	Frames  uint64  `json:"frames"`
	Seconds float64 `json:"seconds"`
	OfPort  bool    `json:"ofPort,omitempty"`
	// Perhaps says that nobody knows whether the port sends in that VLAN: it may.
	Perhaps bool `json:"perhaps,omitempty"`
	// Cause says why, by the plan after the change, and what would keep the frames.
	Cause Cause `json:"cause"`
}
