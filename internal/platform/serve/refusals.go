package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"heddle/internal/identity"
	"heddle/internal/observe/event"
)

// Reasons for which a connection is refused, beside the words of identity.PeerFault.
const (
	refusedCrowded = "crowded" // ended for others, or since it took too long
	refusedLeft    = "left"    // the other side ended it
	refusedNoTLS   = "no-tls"  // what was said is no handshake of a client of ours
)

// Refusals counts the connections that were refused before they could ask for anything, and logs a few of each reason.
type Refusals struct {
	log *slog.Logger

	mu    sync.Mutex
	by    map[string]int64
	limit event.Limiter[string]
	// crowds says when a line tells of those that were ended for others, or were too slow; crowdTold is how many of
	// them were told.
	crowds    event.Limiter[string]
	crowdTold int64
}

// Of each reason so many are logged at once, and then one a period: hostile peers don't fill the log.
const (
	refusalBurst = 5
	refusalEvery = 10 * time.Second
)

// NewRefusals has counted nothing.
func NewRefusals(log *slog.Logger) *Refusals {
	r := &Refusals{log: log, by: map[string]int64{}, limit: event.Limiter[string]{Burst: refusalBurst,
		Every: refusalEvery}, crowds: event.Limiter[string]{Burst: 1, Every: refusalEvery}}
	for _, f := range identity.PeerFaults() {
		r.by[f.String()] = 0
	}
	r.by[refusedCrowded], r.by[refusedLeft], r.by[refusedNoTLS] = 0, 0, 0
	return r
}

// Note takes one in.
func (r *Refusals) Note(address string, err error) {
	reason := refusalOf(err)
	r.mu.Lock()
	r.by[reason]++
	told := reason != refusedLeft && reason != refusedCrowded && r.limit.Allow(reason, time.Now())
	crowd := int64(0)
	if reason == refusedCrowded && r.crowds.Allow(reason, time.Now()) {
		crowd, r.crowdTold = r.by[reason]-r.crowdTold, r.by[reason]
	}
	r.mu.Unlock()
	switch {
	case crowd > 0:
		r.log.Warn("connections that did not prove who they are were ended, for want of room or since they took too "+
			"long", "connections", crowd, "last", address)
		return
	case told:
		r.log.Warn("a connection is refused", "address", address, "reason", reason, "err", err)
		return
	}
	r.log.Debug("a connection is refused", "address", address, "reason", reason, "err", err)
}

// refusalOf is the reason's word.
func refusalOf(err error) string {
	var peer *identity.PeerError
	var alert tls.AlertError
	var ne net.Error
	switch {
	case errors.As(err, &peer):
		return peer.Fault.String()
	case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return refusedCrowded
	case errors.Is(err, errGone), errors.Is(err, io.EOF), errors.As(err, &alert), errors.As(err, &ne):
		return refusedLeft
	}
	return refusedNoTLS
}

// Counts are how many there were, by reason.
func (r *Refusals) Counts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}
