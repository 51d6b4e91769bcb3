package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Conflict is returned when somebody else changed an object since the version that a change was made on.
type Conflict struct {
	Key Key
	// Asked is the version that the change was made on, Current the one that the object has; 0 = it doesn't exist.
	Asked, Current int64
}

func (c *Conflict) Error() string {
	switch {
	case c.Asked == New:
		return fmt.Sprintf("%s exists already (version %d)", c.Key, c.Current)
	case c.Current == 0:
		return fmt.Sprintf("%s was removed by somebody else (the change was made on version %d)", c.Key, c.Asked)
	}
	return fmt.Sprintf("%s was changed by somebody else: the change was made on version %d, it is at %d now; "+
		"read it again and repeat the change", c.Key, c.Asked, c.Current)
}

// Unavailable is returned when etcd doesn't answer, mostly because it has no quorum.
type Unavailable struct {
	// MaybeWritten is set when the write may have happened, or may still: read before it is repeated.
	MaybeWritten bool
	Cause        error
}

func (u *Unavailable) Error() string {
	if u.MaybeWritten {
		return fmt.Sprintf("the cluster's state can't be written now, and whether this write happened is not known: %v",
			u.Cause)
	}
	return fmt.Sprintf("the cluster's state can't be written now: %v", u.Cause)
}

func (u *Unavailable) Unwrap() error { return u.Cause }

// ErrNoSpace is returned when etcd's database has reached its quota.
var ErrNoSpace = errors.New("etcd's database has reached its quota and takes no changes until there is space")

// What makes space: in an embedded etcd, and in one of others.
const (
	ownSpace = "the controller drops history and makes space by itself within a minute; where that is not enough, " +
		"start every controller with a larger --etcd-quota"
	outsideSpace = "who runs that etcd compacts and defragments it, or raises its --quota-backend-bytes, and then " +
		"ends the alarm (etcdctl alarm disarm)"
)

// refused makes an error of etcd about a write one of the store. At the quota it says what to do, and has space made.
func (k *keeper) refused(err error) error {
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		return wrap(err)
	}
	remedy := outsideSpace
	if k.s.etcd != nil {
		remedy = ownSpace
	}
	k.hurry()
	return fmt.Errorf("%w: %s. Hosts go on meanwhile", ErrNoSpace, remedy)
}

// ErrClosed is returned by a store that was closed.
var ErrClosed = errors.New("the store was closed")

// harmless are errors of etcd after which it is certain that nothing was written.
var harmless = []error{rpctypes.ErrNoLeader, rpctypes.ErrTooManyRequests, rpctypes.ErrRequestTooLarge,
	rpctypes.ErrTooManyOps, rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied,
	rpctypes.ErrCorrupt}

// passing are errors of etcd that end by themselves, mostly because a leader is elected.
var passing = []error{rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrNotCapable,
	rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex,
	rpctypes.ErrUnhealthy, rpctypes.ErrTooManyRequests, rpctypes.ErrClusterVersionUnavailable}

// steadily repeats something, that may be done twice, while it fails with an error that passes.
func steadily(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !passes(err) || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// passes reports whether an error ends by itself.
func passes(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

// wrap makes an error of etcd one of the store.
func wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrNoSpace):
		return ErrNoSpace
	}
	without := slices.ContainsFunc(harmless, func(h error) bool { return errors.Is(err, h) })
	return &Unavailable{MaybeWritten: !without, Cause: err}
}
