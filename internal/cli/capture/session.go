package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// endPatience is how long nothing may come at the end of a capture before the remaining frames are given up.
const endPatience = 10 * time.Second

// tally counts the frames of a capture, of all hosts where there are several.
type tally struct {
	d    cli.Deps
	open func() (put func(sighting) error, err error)
	put  func(sighting) error
	most uint64        // as were asked for; 0 is without end
	full chan struct{} // closed when as many have come
	// begin is run when the first host has begun, and closes begun. Only then the output is opened: a capture that
	// never begins leaves a file as it was.
	begin sync.Once
	begun chan struct{}
	// broken is closed when nothing can be written, for the reason of fault.
	broken chan struct{}

	mu    sync.Mutex
	given uint64
	fault error
}

func (f *capture) tally(open func() (func(sighting) error, error)) *tally {
	return &tally{d: f.d, open: open, most: f.count, full: make(chan struct{}), begun: make(chan struct{}),
		broken: make(chan struct{})}
}

// begins takes in that a host has begun.
func (t *tally) begins() error {
	t.begin.Do(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		put, err := t.open()
		if t.put = put; err != nil {
			t.breaks(err)
			return
		}
		fmt.Fprintln(t.d.Stderr, "capturing; Ctrl-C ends it")
		close(t.begun)
	})
	return t.failed()
}

// breaks takes in that nothing can be written. The caller holds the lock.
func (t *tally) breaks(why error) {
	if t.fault == nil {
		t.fault = why
		close(t.broken)
	}
}

// failed is why nothing can be written; nil as long as it can.
func (t *tally) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}

// take passes a frame on, unless there are enough.
func (t *tally) take(s sighting) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most > 0 && t.given >= t.most {
		return nil
	}
	t.given++
	if err := t.put(s); err != nil {
		t.breaks(err)
		return err
	}
	if t.given == t.most {
		close(t.full)
	}
	return nil
}

// captureSession is a capture under way on one host.
type captureSession struct {
	f       *capture
	host    string // "" where it is the only one
	client  api.Service
	ask     api.Capture
	tally   *tally
	ports   map[uint16]api.CapturePort
	counts  api.CaptureCounts
	begun   bool
	heard   func() // called when it begins; nil for nobody
	waited  func() // ends the wait for the begin: a busy host takes seconds to load the programs
	started chan uint64
	heardAt atomic.Int64 // when something came last, in ns since 1970
}

func (f *capture) session(host string, client api.Service, ask api.Capture, t *tally) *captureSession {
	return &captureSession{f: f, host: host, client: client, ask: ask, tally: t, ports: map[uint16]api.CapturePort{},
		started: make(chan uint64, 1)}
}

// follow ends the capture at the agent when it is over here, and reads the frames captured until then.
func (s *captureSession) follow(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, inner, cancel)
	}()
	who := "the agent to begin the capture"
	if s.host != "" {
		who = "host " + s.host + " to begin the capture"
	}
	s.waited = sync.OnceFunc(s.f.d.Waits.Waiting(who))
	defer s.waited()
	err := s.client.Capture(inner, s.ask, s.take)
	cancelled := inner.Err() != nil
	cancel()
	<-watched
	if cancelled && errors.Is(err, context.Canceled) {
		return nil // given up after the user's interrupt
	}
	if told := (*api.Error)(nil); s.begun && errors.As(err, &told) {
		s.counts.Ended = endedWithError
	}
	return err
}

// watch waits for the event that ends the capture.
func (s *captureSession) watch(ctx, inner context.Context, cancel context.CancelFunc) {
	var over <-chan time.Time
	var id uint64
	select {
	case id = <-s.started:
	case <-ctx.Done():
		cancel()
		return
	case <-inner.Done():
		return
	}
	if s.f.duration > 0 {
		timer := time.NewTimer(s.f.duration)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-inner.Done():
		return
	case <-ctx.Done():
	case <-s.tally.full:
	case <-over:
	}
	s.heardAt.Store(time.Now().UnixNano())
	patience, end := context.WithTimeout(inner, endPatience) // a host may hang
	err := s.client.EndCapture(patience, api.EndCapture{ID: id})
	for end(); err == nil; {
		left := endPatience - time.Since(time.Unix(0, s.heardAt.Load()))
		if left <= 0 {
			break
		}
		select {
		case <-inner.Done():
			return
		case <-time.After(left):
		}
	}
	cancel()
}

// whole says that the agent has said how the capture ended: otherwise the last frames may be missing.
func (s *captureSession) whole() bool {
	return !s.begun || s.counts.Ended == api.CaptureAsked || s.counts.Ended == endedWithError
}

// take processes one event.
func (s *captureSession) take(e api.CaptureEvent) error {
	s.heardAt.Store(time.Now().UnixNano())
	switch {
	case e.Started != nil && e.Started.Outer != s.ask.Outer:
		return api.NewError(api.Invalid, "the agent is of an earlier version and does not capture outer packets: "+
			"restart it with this program")
	case e.Started != nil:
		s.waited()
		if err := s.tally.begins(); err != nil {
			return err
		}
		s.begun = true
		if s.heard != nil {
			s.heard()
		}
		s.started <- e.Started.ID
	case e.Port != nil:
		s.ports[e.Port.Number] = *e.Port
	case e.Counts != nil:
		s.counts = *e.Counts
	case e.Frame != nil:
		return s.tally.take(sighting{CaptureFrame: e.Frame, host: s.host, port: s.ports[e.Frame.Port],
			other: s.ports[e.Frame.Other]})
	}
	return nil
}

// summary says how a capture ended.
func summary(w io.Writer, given uint64, counts api.CaptureCounts) {
	fmt.Fprintf(w, "%s captured, %d selected by the switch, %d lost%s\n", printable.Count(given, "frame", "frames"),
		counts.Selected, counts.Lost, lostWhy(counts))
	if counts.Ended == "" {
		fmt.Fprintln(w, "the agent ended before the capture: what came last may be missing, and the counts are those "+
			"of up to a second earlier")
	}
}

// endedWithError is a capture of which the agent has said why it ends, after the last frame and the last counts.
const endedWithError api.CaptureEnd = "error"

// lostWhy says why frames of a capture were lost.
func lostWhy(counts api.CaptureCounts) string {
	if counts.Ended == endedWithError {
		return " or not shown"
	}
	return " because they came faster than they were read"
}
