package api

import (
	"time"

	"heddle/internal/observe/event"
)

// Follow asks for events.
type Follow struct {
	// After is the number of the last event already known.
	After uint64 `json:"after"`
	// Last is how many of the events kept are wanted at most; below 0 all.
	Last int `json:"last"`
	// NoFollow ends with the events there are.
	NoFollow bool `json:"noFollow"`
}

// Events is a batch of events, in order.
type Events struct {
	// Started is when this agent started; numbers of events count from then.
	Started time.Time `json:"started"`
	// Missed is how many events before these were not kept long enough.
	Missed uint64        `json:"missed,omitzero"`
	Events []event.Event `json:"events"`
}
