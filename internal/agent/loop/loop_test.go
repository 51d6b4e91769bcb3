package loop

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// What is handed over runs in the loop's goroutine; what comes after its end does not run, and nobody waits for it.
func TestALoopRunsCallsUntilItEnds(t *testing.T) {
	l, failed := New(), errors.New("failed")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 3 {
			(<-l.Calls())()
		}
	}()
	if err := l.Do(context.Background(), func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Do returned %v", err)
	}
	if err := l.InLoop(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("InLoop returned %v", err)
	}
	if !l.Post(func() {}) || l.Ends() {
		t.Error("the loop has ended")
	}
	<-ended
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	never := func() error { t.Error("it ran"); return nil }
	if err := l.Do(cancelled, never); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up got %v", err)
	}
	l.PostUnless(cancelled.Done(), func() { t.Error("it ran") })
	l.End()
	l.End()
	if err := l.Do(context.Background(), never); err == nil {
		t.Error("a loop that has ended says nothing")
	}
	if err := l.InLoop(never); err != nil || l.Post(func() {}) || !l.Ends() {
		t.Errorf("after the end: %v", err)
	}
}

func TestAnErrorThatLastsIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	c := NewComplaints(slog.New(slog.NewTextHandler(&log, nil)))
	logged := func() int { return strings.Count(log.String(), "\n") }
	c.Complain("save", errors.New("disk full"))
	c.Complain("save", errors.New("disk full"))
	if logged() != 1 || c.Complaint() != "save: disk full" {
		t.Errorf("%d lines, last %q", logged(), c.Complaint())
	}
	c.Contented()
	c.Complain("save", errors.New("disk full"))
	c.Complain("save", errors.New("another"))
	if logged() != 3 {
		t.Errorf("%d lines", logged())
	}
}
