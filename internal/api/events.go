package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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

// serveEvents answers with one JSON document a batch, as they come, until the follower or the server ends.
func serveEvents(server context.Context, w http.ResponseWriter, r *http.Request, s Service) {
	q, err := request[Follow](w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w)
	if err := flush.SetWriteDeadline(time.Time{}); err != nil { // a follower may wait for long
		return
	}
	if err := flush.Flush(); err != nil { // the follower knows that it is connected before there is an event
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(server, cancel)()
	out := json.NewEncoder(w)
	_ = s.Events(ctx, q, func(b Events) error {
		return errors.Join(out.Encode(b), flush.Flush())
	}) // a follower that went away needs no answer
}

// Events follows the agent's events. It ends without an error when ctx ends, or when the agent does.
func (c *Client) Events(ctx context.Context, q Follow, emit func(Events) error) error {
	return followed(ctx, c, "/events", q, emit)
}
