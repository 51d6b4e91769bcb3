package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/observe/event"
)

// Bounds of the claims of static ports. More at work than fill some transactions of the store gain nothing, and each
// takes the fleet's lock: many that wait for one lock cost Go's garbage collector the square of their number.
const (
	// claimTurns is how many claims are at work at a time.
	claimTurns = 512
	// mostClaimsHeld is how many claims of all hosts are at work or wait for their turn.
	mostClaimsHeld = 8192
	// claimPatience is how long a claim waits for its turn. A host waits three seconds for the answer, so that one that
	// came to its turn later would be work for nobody.
	claimPatience = 2 * time.Second
)

// Of the claims that the controller could not take up, so many are logged at once, and then one line a period.
const (
	untakenBurst = 5
	untakenEvery = 10 * time.Second
)

// turns has claims of static ports worked on in the order in which they came, and no more of them than the controller
// can answer in time: the others are answered at once, and their hosts ask again.
type turns struct {
	log  *slog.Logger
	held chan struct{} // one for each claim
	work chan struct{} // one for each at work

	mu    sync.Mutex
	limit event.Limiter[struct{}]
	quiet int // were not logged since the last that was
}

func newTurns(log *slog.Logger) *turns {
	return &turns{log: log, held: make(chan struct{}, mostClaimsHeld), work: make(chan struct{}, claimTurns),
		limit: event.Limiter[struct{}]{Burst: untakenBurst, Every: untakenEvery}}
}

// enter holds a place for a claim; false when none is free. leave gives it back.
func (t *turns) enter() bool {
	select {
	case t.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t *turns) leave() { <-t.held }

// take waits for the turn of a claim that has a place, and does the work then; false when that took too long.
func (t *turns) take(ctx context.Context, work func()) bool {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	select {
	case t.work <- struct{}{}:
		cancel()
		defer func() { <-t.work }()
		work()
		return true
	case <-ctx.Done():
		cancel()
		return false
	}
}

// untaken logs that a claim was not answered, seldom.
func (t *turns) untaken(host string, q *controllerv1.PortClaim, why string) {
	t.mu.Lock()
	told, quiet := t.limit.Allow(struct{}{}, time.Now()), t.quiet
	if t.quiet++; told {
		t.quiet = 0
	}
	t.mu.Unlock()
	if told {
		t.log.Warn("a claim of a static port can't be answered now; the host asks again", "host", host, "group",
			q.GetSwitch()+"/"+q.GetPortGroup(), "vm", q.GetVm(), "adapter", q.GetAdapter(), "why", why,
			"others", quiet)
	}
}

// tooMany is the answer to a claim that found no place or no turn: as if the store did not answer.
func tooMany(q *controllerv1.PortClaim) *controllerv1.PortAnswer {
	return &controllerv1.PortAnswer{Number: q.GetNumber(), Unavailable: true,
		Refused: "too many claims are under way"}
}
