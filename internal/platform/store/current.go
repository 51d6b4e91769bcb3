package store

import (
	"context"
	"sync/atomic"
	"time"
)

// staleness is why reads may be old; nothing while they are current.
type staleness struct{ why atomic.Pointer[error] }

func (s *staleness) get() error {
	if err := s.why.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *staleness) set(err error) {
	if err == nil {
		s.why.Store(nil)
		return
	}
	s.why.Store(&err)
}

// Stale says why reads may be old: etcd has no quorum, or doesn't answer. It is nil when they are current. A loss of
// the quorum is noticed after some seconds; Confirm knows at once.
func (s *Store) Stale() error { return s.stale.get() }

// Confirm asks the majority of etcd's members whether they are there. It returns why what is read may be old, nil where
// they answered. It writes nothing, so that it may be called as often as somebody reads.
func (s *Store) Confirm(ctx context.Context) error {
	if err := s.Stale(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for {
		_, err := s.client.Get(ctx, s.keys.meta("cluster"))
		if err == nil {
			return nil
		}
		if !passes(err) || !pause(ctx, 50*time.Millisecond) { // a leader is elected
			return &Unavailable{Cause: err}
		}
	}
}
