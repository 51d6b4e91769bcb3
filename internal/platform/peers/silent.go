package peers

import (
	"slices"
	"time"
)

// Later is the later one of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// SilentSince is when the last of the controllers with these names began not to answer.
func (r *Roster) SilentSince(names []string) (last time.Time) {
	others := r.Others()
	r.links.mu.Lock()
	defer r.links.mu.Unlock()
	for _, c := range others {
		if k := r.links.to[c.ID]; k != nil && slices.Contains(names, NameOf(c)) {
			last = Later(last, k.silent)
		}
	}
	return last
}
