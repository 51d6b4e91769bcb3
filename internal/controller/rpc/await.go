package rpc

import (
	"context"
	"errors"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// until returns when a condition holds, which is asked with the fleet's lock now and after each change; or when ctx
// ends, with its error.
func until(ctx context.Context, f *fleet, holds func() bool) error {
	for {
		f.mu.Lock()
		is, changed := holds(), f.changed
		f.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settled waits until this controller has that revision and those of the hosts that are connected to it have answered,
// for as long as patience.
func (f *fleet) settled(ctx context.Context, revision int64, names []string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := names
	err := until(ctx, f, func() bool {
		if f.revision < revision {
			return false
		}
		left = f.pending(left)
		return len(left) == 0
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// pending is what is left of the names without those at the end whose hosts have answered: as every answer of a host is
// a reason to look, the others are looked at when it is their turn. The caller holds the lock.
func (f *fleet) pending(names []string) []string {
	for i := len(names); i > 0; i-- {
		h := f.names[names[i-1]]
		if h == nil {
			continue
		}
		if state, _ := f.state(h); state == controllerv1.HostState_HOST_STATE_PENDING {
			return names[:i]
		}
	}
	return nil
}
