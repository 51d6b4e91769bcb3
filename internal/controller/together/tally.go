package together

import "sync"

// Tally has the counts of the changes that a controller was asked for. Its methods may be called at any time.
type Tally struct {
	mu     sync.Mutex
	counts Counts
}

// Count changes the counts.
func (t *Tally) Count(change func(*Counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
}

// Counts are those of now.
func (t *Tally) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}
