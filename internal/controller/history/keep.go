package history

import (
	"errors"
	"fmt"
	"time"

	"heddle/internal/slice"
)

// Step is an entry with its body.
type Step struct {
	Entry
	Body
}

// Before is the definition that a change was made on, which has a record with the whole of it.
func (s Step) Before() *slice.Set { return slice.Of(s.Whole...) }

// ErrBroken says that the changes between a whole definition and a later one are not all there.
var ErrBroken = errors.New("the definition's history has a gap")

// After is the definition after a stretch of changes: the first has the whole definition before it, and each is made on
// the one before.
func After(stretch []Step) (*slice.Set, error) {
	if len(stretch) == 0 || stretch[0].Since != 0 {
		return nil, ErrBroken
	}
	set := stretch[0].Before()
	for i, s := range stretch {
		if i > 0 && s.Base != stretch[i-1].Revision {
			return nil, fmt.Errorf("%w before revision %d", ErrBroken, s.Revision)
		}
		set.Apply(slice.Change{Put: s.Put, Removed: s.Removed})
	}
	return set, nil
}

// Keep says how much of the history is kept.
type Keep struct {
	// Changes is how many at least; 0 keeps no history.
	Changes int64
	// Time is after what time a change may go, also where there are fewer; 0 for never.
	Time time.Duration
}

// DefaultKeep is a thousand changes, however old.
func DefaultKeep() Keep { return Keep{Changes: 1000} }

// Outdated returns the base below which records have had their time, 0 for none. oldest are the first records that
// there
// are, in order, number is that of the newest. What is left begins with a whole definition.
func (k Keep) Outdated(oldest []Entry, number int64, now time.Time) (below int64) {
	for i, e := range oldest {
		enough := number-e.Number+1 >= k.Changes
		old := k.Time > 0 && i > 0 && now.Sub(oldest[i-1].At) >= k.Time
		if i > 0 && !enough && !old { // the first says nothing: what goes is before an entry
			break
		}
		if e.Since == 0 && i > 0 {
			below = e.Base
		}
	}
	return below
}
