package driverlease

import (
	"sync"
	"time"
)

// Sight is what one controller sees of who drives rollouts. It is safe for several goroutines.
type Sight struct {
	mu  sync.Mutex
	own bool
	// since is since when rollouts are to be driven and nobody is seen to do so; zero where somebody does.
	since time.Time
}

// Saw takes in whether this controller drives, and whether anybody does, or nobody has to.
func (s *Sight) Saw(own, somebody bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.own = own; {
	case own || somebody:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = time.Now()
	}
}

// Drives reports whether this controller drives, and for how long nobody is seen to who should.
func (s *Sight) Drives() (own bool, nobody time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return s.own, 0
	}
	return s.own, time.Since(s.since)
}
