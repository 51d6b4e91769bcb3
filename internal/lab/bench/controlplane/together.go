package controlplane

import (
	"context"
	"time"

	"heddle/internal/agent/state"
)

// Prepare implements cluster.Together. A simulated host can always make a change.
func (h *host) Prepare(context.Context, string, *state.Slice) ([]string, error) { return nil, nil }

// Clock implements cluster.Together: each host's clock began at another time.
func (h *host) Clock() (int64, error) { return h.ticks(), nil }

func (h *host) ticks() int64 { return int64(time.Since(h.began)) }

// ActiveAt implements cluster.Together.
func (h *host) ActiveAt(context.Context) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.at.Sub(h.began)), nil
}

// awaitInstant returns at an instant of the host's clock; 0 is none.
func (h *host) awaitInstant(ctx context.Context, at int64) error {
	if at == 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(at - h.ticks()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
