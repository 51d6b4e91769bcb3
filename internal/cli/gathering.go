package cli

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// gatherFor is how long something may wait for what is earlier, of other hosts.
	gatherFor = 200 * time.Millisecond
	// mostGathered is how many may wait; a further one puts all out.
	mostGathered = 1 << 14
)

// Gathering holds what comes from several hosts for a moment, so that it is put out in the order of its time.
type Gathering[T any] struct {
	Put func(T) error
	At  func(T) time.Time
	// Wait is how long something waits for what is earlier; 0 for gatherFor.
	Wait time.Duration

	mu      sync.Mutex
	waiting []gathered[T]
	later   *time.Timer
	err     error
}

// gathered waits until then, unless what is later is put out before.
type gathered[T any] struct {
	v     T
	until time.Time
}

// Take takes one in. The error is of one before, which could not be put out.
func (g *Gathering[T]) Take(v T) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := cmp.Or(g.Wait, gatherFor)
	g.waiting = append(g.waiting, gathered[T]{v, time.Now().Add(wait)})
	if len(g.waiting) >= mostGathered {
		g.sort()
		g.out(len(g.waiting))
	} else if g.later == nil {
		g.later = time.AfterFunc(wait, g.due)
	}
	return g.err
}

// due puts out what has waited long enough, and what is earlier.
func (g *Gathering[T]) due() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sort()
	now, n := time.Now(), 0
	for i, w := range g.waiting {
		if !w.until.After(now) {
			n = i + 1
		}
	}
	g.out(n)
}

// Flush puts out all that waits.
func (g *Gathering[T]) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sort()
	g.out(len(g.waiting))
	return g.err
}

func (g *Gathering[T]) sort() {
	slices.SortStableFunc(g.waiting, func(a, b gathered[T]) int { return g.At(a.v).Compare(g.At(b.v)) })
}

// out puts the first n out, and waits for the others. The caller holds the lock.
func (g *Gathering[T]) out(n int) {
	if g.later != nil {
		g.later.Stop()
		g.later = nil
	}
	for _, w := range g.waiting[:n] {
		if g.err == nil {
			g.err = g.Put(w.v)
		}
	}
	g.waiting = slices.Clone(g.waiting[n:])
	if len(g.waiting) > 0 {
		first := slices.MinFunc(g.waiting, func(a, b gathered[T]) int { return a.until.Compare(b.until) })
		g.later = time.AfterFunc(time.Until(first.until), g.due)
	}
}
