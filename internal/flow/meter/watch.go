package meter

import (
	"slices"
	"sync"

	"heddle/internal/flow"
)

// Told is a portion of records, as they were made.
type Told struct {
	Switch  string
	Points  flow.Points // of the slots in the records; must not be changed
	Records []flow.Record
}

// Subscription delivers the records that are made from now on.
type Subscription struct {
	w    *watchers
	c    chan Told
	mu   sync.Mutex
	lost uint64
}

// watchers are the subscriptions to records.
type watchers struct {
	mu   sync.Mutex
	subs []*Subscription
}

// Subscribe begins a subscription that buffers up to n portions of records until they are read. Any goroutine may call
// it.
func (m *Meter) Subscribe(n int) *Subscription {
	s := &Subscription{w: &m.watchers, c: make(chan Told, n)}
	m.watchers.mu.Lock()
	defer m.watchers.mu.Unlock()
	m.watchers.subs = append(m.watchers.subs, s)
	return s
}

// Records is the channel on which they come.
func (s *Subscription) Records() <-chan Told { return s.c }

// Lost is how many records did not fit since the subscription began: a slow reader does not hold up the Meter.
func (s *Subscription) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close ends the subscription; no more records come.
func (s *Subscription) Close() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.subs = slices.DeleteFunc(s.w.subs, func(other *Subscription) bool { return other == s })
}

// tell gives each subscriber its own slice of the same records; the records must not be changed.
func (w *watchers) tell(name string, points flow.Points, records []flow.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.subs) == 0 {
		return
	}
	own := slices.Clone(records)
	for i := range own {
		if own[i].Reverse != nil {
			reverse := *own[i].Reverse
			own[i].Reverse = &reverse
		}
	}
	for _, s := range w.subs {
		select {
		case s.c <- Told{Switch: name, Points: points, Records: own}:
		default:
			s.mu.Lock()
			s.lost += uint64(len(records))
			s.mu.Unlock()
		}
	}
}
