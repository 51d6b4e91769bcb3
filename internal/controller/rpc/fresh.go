package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/platform/store"
)

// freshTime is how long a reader waits until this controller has the newest state. A leader of etcd is elected sooner.
const freshTime = 3 * time.Second

// catchUp returns when this controller has all that was written before the call, by whichever controller.
func (s *everywhere) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freshTime)
	defer cancel()
	err := s.roster.Synced(ctx)
	if errors.Is(err, store.ErrNoSpace) { // nobody can write
		return nil
	}
	if err != nil {
		return err
	}
	written := s.roster.Written()
	return until(ctx, s.fleet, func() bool { return s.fleet.read >= written })
}

// fresh is catchUp for those who read. It returns why what they read may be old, "" where it is not: a controller that
// was cut off a moment ago does not know that yet.
func (s *everywhere) fresh(ctx context.Context) (stale string) {
	if stale = s.roster.StaleText(); stale != "" {
		return stale
	}
	if err := s.catchUp(ctx); err != nil {
		return fmt.Sprintf("the controllers' state did not answer, so that this may be old: %v", err)
	}
	return ""
}

// confirming has the majority of the controllers confirm that what is read is current, while the caller reads. It
// returns what says why that may be old, "" where it is not.
func (s *everywhere) confirming(ctx context.Context) (stale func() string) {
	said := make(chan string, 1)
	go func() { said <- s.roster.Confirmed(ctx) }() // bounded by the roster
	return func() string { return <-said }
}

// askAll is askHosts for who is told how all hosts are: it also says why that may be old.
func (s *everywhere) askAll(ctx context.Context, q *controllerv1.GetHostsHereRequest) (*fanout.Answers, string) {
	stale := s.confirming(ctx)
	there := s.askHosts(ctx, q)
	return there, stale()
}
