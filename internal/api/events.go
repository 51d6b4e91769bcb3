package api

import (
	"time"

	"heddle/internal/observe/event"
)

// Follow is a request for events.
type Follow struct {
	// After is the number of the last event that is already known.
	After uint64 `json:"after"`
	// Last is the most kept events that are wanted; below 0 all.
	Last int `json:"last"`
	// NoFollow ends the stream after the kept events.
	NoFollow bool `json:"noFollow"`
}

// Events is a batch of events, in order.
type Events struct {
	// Started is when this agent started; the numbers of events count from then.
	Started time.Time `json:"started"`
	// Missed is how many events before these are lost because they were not kept.
	Missed uint64        `json:"missed,omitzero"`
	Events []event.Event `json:"events"`
}
