package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"heddle/internal/api"
)

const (
	// hostPatience is how long a host may take while no other host answers either.
	hostPatience = 8 * time.Second
	// mostTries is how often a host is asked that goes from one controller to another meanwhile, betweenTime how long
	// it may take for that, and nextTry the time between two tries.
	mostTries   = 8
	betweenTime = 5 * time.Second
	nextTry     = 500 * time.Millisecond
)

// stragglers ends calls to hosts that do not answer, so that they do not hold up what others have said: a host that is
// connected may hang, or its network be cut a moment ago. On a busy machine all are slow, so the time counts from the
// last answer of any.
type stragglers struct {
	patience time.Duration // of one host while no other answers

	mu   sync.Mutex
	last time.Time // of the last answer
}

var errStraggler = errors.New("it has not answered")

// begin begins a call to a host. done ends it, and makes what was given up an error of that host.
func (s *stragglers) begin(ctx context.Context, host string) (within context.Context, done func(error) error) {
	within, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go s.watch(cancel, ended)
	return within, func(err error) error {
		close(ended)
		late := errors.Is(context.Cause(within), errStraggler)
		cancel(nil)
		if err != nil && late {
			return &api.AwayError{Host: host, Why: "it has not answered for " + s.patience.String()}
		}
		if err == nil {
			s.mu.Lock()
			s.last = time.Now()
			s.mu.Unlock()
		}
		return err
	}
}

// watch cancels a call that takes too long.
func (s *stragglers) watch(cancel context.CancelCauseFunc, ended <-chan struct{}) {
	begun := time.Now()
	wait := time.NewTimer(s.patience)
	defer wait.Stop()
	for {
		select {
		case <-ended:
			return
		case <-wait.C:
		}
		left := s.patience - time.Since(s.since(begun))
		if left <= 0 {
			cancel(errStraggler)
			return
		}
		wait.Reset(left)
	}
}

// since is when a call began, or the last answer came, whichever is later.
func (s *stragglers) since(begun time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.After(begun) {
		return s.last
	}
	return begun
}

// justNow says that a host has been disconnected for so short a time that it may be on its way to another controller.
func justNow(since time.Time) bool { return time.Since(since).Abs() < betweenTime }

// between says, after a call to a host has failed, that it is worth another try: the host went from one controller to
// another, as all do that are spread anew or whose controller has ended. Only calls that look are asked of hosts, which
// may be asked twice.
func (t *Target) between(ctx context.Context, err error) bool {
	if t.Host == "" || !errors.Is(err, api.ErrAway) || ctx.Err() != nil {
		return false
	}
	f, err := t.Fleet()
	if err != nil {
		return false
	}
	list, err := f.Hosts(ctx)
	if err != nil {
		return false
	}
	for _, h := range list.Hosts {
		if h.Name == t.Host && (h.State != api.HostDisconnected || justNow(h.Since)) {
			SleepFor(ctx, nextTry)
			return ctx.Err() == nil
		}
	}
	return false
}
