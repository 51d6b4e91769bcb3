package peers

import (
	"context"
	"fmt"
	"time"

	"heddle/internal/platform/rpcerrors"
)

// Current returns when this controller has everything that was written before, by whichever controller.
func (r *Roster) Current(ctx context.Context) error {
	return rpcerrors.OfStore(r.Synced(ctx))
}

// Synced is current with the store's own error.
func (r *Roster) Synced(ctx context.Context) error { return r.syncing.Do(ctx, r.store.Sync) }

// Written is the revision of what was read last.
func (r *Roster) Written() int64 { return r.store.Revision() }

// StaleText says why reads may be old; "" where they are current.
func (r *Roster) StaleText() string {
	if err := r.store.Stale(); err != nil {
		return fmt.Sprintf("the controllers have no majority, so that this may be old: %v", err)
	}
	return ""
}

// confirmTime is how long a reader waits for the majority. A leader of etcd is elected sooner.
const confirmTime = 3 * time.Second

// Confirmed is StaleText as the majority of the controllers says itself: a controller that lost it a moment ago does
// not know that yet, and would say that all is well.
func (r *Roster) Confirmed(ctx context.Context) string {
	if stale := r.StaleText(); stale != "" {
		return stale
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	if err := r.confirming.Do(ctx, r.store.Confirm); err != nil {
		return fmt.Sprintf("a majority of the controllers has not answered, so that this may be old: %v", err)
	}
	return ""
}
