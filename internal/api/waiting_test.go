package api

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// mute is a socket that takes connections and never answers.
func mute(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}

// heardWaits keeps who was waited for, and whether the wait has ended.
type heardWaits struct {
	mu      sync.Mutex
	who     string
	begun   func()
	answers int
}

func (h *heardWaits) Waiting(who string) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.who = who
	h.begun()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers++
	}
}

// A call that nobody answers says who was asked, what has become of a change, and whether it was interrupted or took
// too long; meanwhile it says who is waited for.
func TestCallsWithoutAnAnswer(t *testing.T) {
	path := mute(t)
	agent := func(ctx context.Context) error { _, err := NewClient(path).Membership(ctx); return err }
	fleet := func(ctx context.Context) error { _, err := NewFleet(path).Hosts(ctx); return err }
	for _, c := range []struct {
		name        string
		call        func(context.Context) error
		interrupted bool
		who         string
		want        []string
	}{
		{"an agent, interrupted", agent, true, "the agent at " + path, []string{"interrupted before the agent at ",
			"may be active or not"}},
		{"an agent, too long", agent, false, "the agent at " + path, []string{"has not answered in time", "its log",
			"may be active or not"}},
		{"a controller, interrupted", fleet, true, "the controller at " + path,
			[]string{"interrupted before the controller at ", "may be made or not"}},
		{"a controller, too long", fleet, false, "the controller at " + path, []string{"has not answered in time"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := &heardWaits{begun: cancel}
			why := context.Canceled
			if !c.interrupted {
				ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				h.begun, why = func() {}, context.DeadlineExceeded
			}
			err := c.call(WithWaits(ctx, h))
			if !errors.Is(err, why) {
				t.Fatalf("error: %v", err)
			}
			for _, part := range append(c.want, path) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "context") {
				t.Errorf("%q has a word of the program", err)
			}
			if h.who != c.who && c.interrupted {
				t.Errorf("waited for %q, want %q", h.who, c.who)
			}
			if h.who != "" && h.answers != 1 {
				t.Errorf("the wait has ended %d times", h.answers)
			}
		})
	}
}
