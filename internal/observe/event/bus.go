package event

import (
	"context"
	"sync"
	"time"
)

// Bus keeps the last events and hands them to any number of followers, each at its own speed. A follower that is too
// slow misses events and gets their number; it never holds up the publisher.
type Bus struct {
	mu   sync.Mutex
	keep uint64
	ring []Event       // grows to keep events, and then goes round: the event s is at (s-1) % keep
	next uint64        // Seq of the next event
	more chan struct{} // closed at the next event
}

// NewBus makes a bus that keeps the last keep events.
func NewBus(keep int) *Bus {
	return &Bus{keep: uint64(keep), next: 1, more: make(chan struct{})}
}

// Publish numbers the event, stamps it unless it has a time, and wakes the followers.
func (b *Bus) Publish(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.Seq = b.next
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if b.next <= b.keep {
		b.ring = append(b.ring, e)
	} else {
		b.ring[(b.next-1)%b.keep] = e
	}
	b.next++
	close(b.more)
	b.more = make(chan struct{})
}

// Last is the Seq of the last event, 0 when there was none.
func (b *Bus) Last() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next - 1
}

// mostAtOnce bounds a batch: many followers that do not read hold one each.
const mostAtOnce = 256

// After returns the first events with a Seq above seq that are still kept, and how many of them are not. When there
// are none yet it waits for the next; the error is the context's.
func (b *Bus) After(ctx context.Context, seq uint64) (events []Event, missed uint64, err error) {
	for {
		events, missed, more := b.since(seq)
		if len(events) > 0 {
			return events, missed, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

func (b *Bus) since(seq uint64) (events []Event, missed uint64, more <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := max(seq, seq+1) // the last of all numbers is after every event
	if b.next > b.keep && first < b.next-b.keep {
		missed = b.next - b.keep - first
		first = b.next - b.keep
	}
	for s := first; s < b.next && s-first < mostAtOnce; s++ {
		events = append(events, b.ring[(s-1)%b.keep])
	}
	return events, missed, b.more
}
