package stats

import (
	"heddle/internal/abi"
	"heddle/internal/api"
)

// From these rates on, in frames per second, a port floods. They are the example of storm control in the how-to about
// storms: a guest that serves one purpose sends a few broadcasts a second, a router or a monitoring system with many
// neighbours some hundreds; multicast also carries cluster heartbeats and neighbour discovery, which need more.
const (
	BroadcastFlood = 500
	MulticastFlood = 1000
	UnknownFlood   = 500
)

// countFlooded counts the frames that the port sent to many receivers.
func (c *Counts) countFlooded(s *api.Stats) {
	for _, n := range s.Counters {
		switch n.Name {
		case "packetsInBroadcast":
			c.BroadcastIn = n.Value
		case "packetsInMulticast":
			c.MulticastIn = n.Value
		}
	}
	for _, n := range s.Extra {
		if n.Name == "unknownFlooded" || n.Name == "unknownNotFlooded" {
			c.UnknownIn += n.Value
		}
	}
	if s.Uplink { // frames that the physical network floods and that have no receiver here are by design
		return
	}
	for _, d := range s.Drops {
		if d.Reason == abi.ReasonUnknownUnicast.String() {
			c.UnknownIn += d.Value
		}
	}
}

// ToMany returns the rate of frames with many receivers, per second.
func (r *Rates) ToMany() float64 { return r.BroadcastIn + r.MulticastIn + r.UnknownIn }

// Floods reports whether that rate is higher than guests need.
func (r *Rates) Floods() bool {
	return r.BroadcastIn >= BroadcastFlood || r.MulticastIn >= MulticastFlood || r.UnknownIn >= UnknownFlood
}
