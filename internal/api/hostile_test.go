package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts the applies that are running.
type counting struct {
	echo
	now, most, total atomic.Int32
	let              chan struct{}
}

func (c *counting) Apply(context.Context, Apply) (*Applied, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	c.most.Store(max(c.most.Load(), n))
	c.total.Add(1)
	<-c.let
	return &Applied{}, nil
}

func TestLargeRequestsAreTakenOneAfterTheOther(t *testing.T) {
	s := &counting{let: make(chan struct{})}
	c, _ := serve(t, s)
	done := make(chan error)
	const calls = 5
	content := strings.Repeat("#", smallBody)
	for range calls {
		go func() { _, err := c.Apply(t.Context(), Apply{Content: content}); done <- err }()
	}
	for range calls {
		s.let <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if s.most.Load() != 1 || s.total.Load() != calls {
		t.Errorf("%d large requests, %d at a time; want %d, one at a time", s.total.Load(), s.most.Load(), calls)
	}
	// Small requests do not wait for the large ones.
	go func() { _, err := c.Apply(t.Context(), Apply{Content: content}); done <- err }()
	go func() { _, err := c.Apply(t.Context(), Apply{Content: "x"}); done <- err }()
	for end := time.Now().Add(time.Minute); s.total.Load() != calls+2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := s.total.Load(); n != calls+2 {
		t.Errorf("%d requests are answered, want %d: a small one waits for the large ones", n, calls+2)
	}
	close(s.let)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestALargeRequestWhoseCallerLeavesGivesItsPlaceBack(t *testing.T) {
	s := &counting{let: make(chan struct{})}
	close(s.let)
	c, socket := serve(t, s)
	slow, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(slow, "POST /heddle.agent.v1.ChangeService/Apply HTTP/1.1\r\nHost: "+
		"agent\r\nContent-Type: application/proto\r\n%s: %d\r\nContent-Length: %d\r\n\r\n{", versionHeader, Version,
		2*smallBody); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { _, err := c.Apply(t.Context(), Apply{Content: strings.Repeat("#", smallBody)}); done <- err }()
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnInterruptedCallSaysThatTheAgentMayHaveDoneIt(t *testing.T) {
	s := &counting{let: make(chan struct{})}
	defer close(s.let)
	c, _ := serve(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for end := time.Now().Add(time.Minute); s.total.Load() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		cancel(io.ErrNoProgress) // the cause, as with a signal
	}()
	if _, err := c.Apply(ctx, Apply{}); err == nil || !strings.Contains(err.Error(), "may be active or not") {
		t.Errorf("%v", err)
	}
}
