package observe

import (
	"strings"
	"time"
)

// Base are the counters that a port had before this host began to count: they came with it from another host (S79).
// What is shown is their sum with what this host has counted.
type Base struct {
	Counters Counters `json:"counters,omitzero"`
	// Others are those whose names this version does not know. They go on with the port.
	Others []Named `json:"others,omitzero"`
	// Less is what this host had counted of the port before the guest went away last: it went with the port, and is
	// part of Counters now that the port is back.
	Less Counters `json:"less,omitzero"`
}

// With are the port's counters where this host has counted now.
func (b Base) With(now Counters) Counters {
	if b.Less.zero() && b.Counters.zero() { // of nearly all ports: a thousand are read every minute
		return now
	}
	return now.minus(b.Less).Plus(b.Counters)
}

// Names returns the counters that are not 0, together with what this host has counted now.
func (b Base) Names(now Counters) []Named { return append(b.With(now).Names(), b.Others...) }

// OtherReasons returns what was dropped and refused for reasons that this version does not know.
func (b Base) OtherReasons() (dropped, refused []Named) {
	for _, n := range b.Others {
		if reason, ok := strings.CutPrefix(n.Name, dropPrefix); ok {
			dropped = append(dropped, Named{reason, n.Value})
		} else if reason, ok := strings.CutPrefix(n.Name, refusedPrefix); ok {
			refused = append(refused, Named{reason, n.Value})
		}
	}
	return dropped, refused
}

// Spent is how much of its storm control's allowance a port had used up when a frame of a class (abi.ClassUnicast:
// unknown destinations) last passed.
type Spent struct {
	Class int `json:"class"`
	// Billionths are billionths of a frame.
	Billionths int64 `json:"billionths"`
	// Idle is the time since that frame.
	Idle time.Duration `json:"idle"`
}
