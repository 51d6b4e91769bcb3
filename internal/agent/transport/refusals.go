package transport

import (
	"log/slog"
	"sync"
	"time"

	"heddle/internal/observe/event"
)

// So many refusals are logged at once, and then one a period: hostile peers don't fill the log.
const (
	refusalBurst = 5
	refusalEvery = 10 * time.Second
)

// refusals logs a few of the connections and calls that are refused.
type refusals struct {
	log *slog.Logger

	mu    sync.Mutex
	limit event.Limiter[struct{}]
}

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, limit: event.Limiter[struct{}]{Burst: refusalBurst, Every: refusalEvery}}
}

// note takes one in.
func (r *refusals) note(address string, err error) {
	r.mu.Lock()
	told := r.limit.Allow(struct{}{}, time.Now())
	r.mu.Unlock()
	if told {
		r.log.Warn("a call about a move is refused", "address", address, "err", err)
	}
}
