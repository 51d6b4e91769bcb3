package rpc

import (
	"context"
	"errors"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// settled waits until this controller has that revision and those of the hosts that are connected to it have answered,
// for as long as patience.
func (f *fleet) settled(ctx context.Context, revision int64, names []string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := names
	for {
		f.mu.Lock()
		if f.revision >= revision {
			left = f.pending(left)
		}
		done := f.revision >= revision && len(left) == 0
		changed := f.changed
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			return nil
		}
	}
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
