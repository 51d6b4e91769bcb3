package events

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe/event"
)

// TestEvents_FollowAnAgentAcrossItsRestart ends the stream and starts it again with another start time.
func TestEvents_FollowAnAgentAcrossItsRestart(t *testing.T) {
	t.Parallel() // it waits
	s := &restarting{}
	first := time.Now()
	s.events = []api.Events{{Started: first, Events: []event.Event{{Seq: 5, Kind: event.Link, Text: "before"}}}}
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	f := &follower{d: cli.Deps{Stdout: &out, Stderr: &errs}, last: 10}
	f.client, s.before = s, func(n int) {
		switch n {
		case 2: // the same agent again, then another one
			s.events[0].Events = append(s.events[0].Events, event.Event{Seq: 6, Kind: event.Link, Text: "more"})
		case 3:
			s.events = []api.Events{{Started: first.Add(time.Minute),
				Events: []event.Event{{Seq: 1, Kind: event.Link, Text: "after"}}}}
		case 4:
			cancel()
		}
	}
	if err := f.run(ctx); err != nil {
		t.Fatal(err)
	}
	for _, once := range []string{"before", "more", "after"} {
		if strings.Count(out.String(), once) != 1 {
			t.Errorf("%q is not told once:\n%s", once, out.String())
		}
	}
}

// restarting is an agent that calls before ahead of the nth request for events.
type restarting struct {
	api.Service
	events []api.Events
	asked  int
	before func(n int)
}

func (r *restarting) Events(_ context.Context, _ api.Follow, emit func(api.Events) error) error {
	r.asked++
	r.before(r.asked)
	for _, e := range r.events {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}
