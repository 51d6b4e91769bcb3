package rpc

import (
	"context"
	"errors"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// await waits until the hosts have that revision active, or cannot, for as long as patience, and says who has not.
func (f *fleet) await(ctx context.Context, revision int64, names []string, patience time.Duration) (
	[]*controllerv1.HostProblem, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := names
	for {
		f.mu.Lock()
		var waiting []*controllerv1.HostProblem
		if f.revision >= revision {
			if left = f.pending(left); len(left) == 0 {
				waiting, left = f.waiting(names)
			}
		}
		done := f.revision >= revision && len(left) == 0
		changed := f.changed
		f.mu.Unlock()
		if done {
			return waiting, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, ctx.Err()
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			waiting, _ = f.waiting(names)
			return waiting, nil
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

// waiting are those of the hosts that do not have the newest version active; pending: those that may have it soon. The
// caller holds the lock.
func (f *fleet) waiting(names []string) (list []*controllerv1.HostProblem, pending []string) {
	for _, name := range names {
		h := f.names[name]
		if h == nil { // it was taken out of the cluster
			continue
		}
		state, why := f.state(h)
		switch state {
		case controllerv1.HostState_HOST_STATE_UP, controllerv1.HostState_HOST_STATE_WARNING:
			continue
		case controllerv1.HostState_HOST_STATE_PENDING:
			pending = append(pending, name)
			why = []string{"it has not answered yet"}
		case controllerv1.HostState_HOST_STATE_DISCONNECTED:
			why = []string{"it is not connected"}
		}
		list = append(list, &controllerv1.HostProblem{Host: name, Problems: why})
	}
	return list, pending
}
