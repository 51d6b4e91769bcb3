package stats

import (
	"heddle/internal/abi"
	"heddle/internal/api"
)

// From these rates on, in frames per second, a port floods. They are the rates that the how-to about storms gives as an
// example of storm control: a guest that serves one purpose sends a few broadcasts a second, a router or a monitoring
// system with many neighbours some hundreds; multicast also carries cluster heartbeats and neighbour discovery, which
// need more room.
const (
	BroadcastFlood = 500
	MulticastFlood = 1000
	UnknownFlood   = 500
)

// countFlooded counts what the port sent to many.
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
	if s.Uplink { // what the physical network floods for nobody here is left out by design
		return
	}
	for _, d := range s.Drops {
		if d.Reason == abi.ReasonUnknownUnicast.String() {
			c.UnknownIn += d.Value
		}
	}
}

// ToMany returns the rate of frames sent to any number of receivers.
func (r *Rates) ToMany() float64 { return r.BroadcastIn + r.MulticastIn + r.UnknownIn }

// Floods reports whether that is more than guests need.
func (r *Rates) Floods() bool {
	return r.BroadcastIn >= BroadcastFlood || r.MulticastIn >= MulticastFlood || r.UnknownIn >= UnknownFlood
}
