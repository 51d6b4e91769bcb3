package peers

import (
	"context"

	"heddle/internal/controller/fault"
)

// Current returns when this controller has everything that was written before, by whichever controller.
func (r *Roster) Current(ctx context.Context) error {
	return fault.OfStore(r.Synced(ctx))
}

// Synced is current with the store's own error.
func (r *Roster) Synced(ctx context.Context) error { return r.syncing.Do(ctx, r.store.Sync) }

// Written is the revision of what was read last.
func (r *Roster) Written() int64 { return r.store.Revision() }
