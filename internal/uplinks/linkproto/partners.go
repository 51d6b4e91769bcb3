package linkproto

import (
	"log/slog"
	"time"

	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/stp"
)

// Partner is a device that speaks LACP at the other end of an uplink that is in no LAG: it takes its end of the link
// for a part of a bundle, which this host does not know of.
type Partner struct {
	System lacp.System
	Key    uint16
}

// partnerTimeout is how long a partner that says nothing is remembered: LACP's long timeout (IEEE 802.1AX, 6.4.4), and
// the time that a busy machine may need to hear the third of three LACPDUs.
const partnerTimeout = 100 * time.Second

// StartPartners starts to hear LACP.
func StartPartners(open Opener, log *slog.Logger, report func([]HeardReport[Partner])) *Listener[Partner] {
	return listen(open, log, hearing[Partner]{"LACP", hearsLACP(), partnerOf, partnerTimeout}, report)
}

func partnerOf(payload []byte) (Partner, bool) {
	pdu, _, err := lacp.Decode(payload)
	if err != nil || pdu == nil {
		return Partner{}, false
	}
	return Partner{System: pdu.Actor.System, Key: pdu.Actor.Key}, true
}

// treeTimeout is how long a bridge that says nothing is remembered: the longest time that spanning tree itself does so
// (802.1D-2004 table 17-1, Max Age).
const treeTimeout = 40 * time.Second

// StartTrees starts to hear spanning tree.
func StartTrees(open Opener, log *slog.Logger, report func([]HeardReport[stp.Port])) *Listener[stp.Port] {
	return listen(open, log, hearing[stp.Port]{"spanning tree", hearsSTP(), portOf, treeTimeout}, report)
}

func portOf(payload []byte) (stp.Port, bool) {
	p, err := stp.Decode(payload)
	return p, err == nil
}
