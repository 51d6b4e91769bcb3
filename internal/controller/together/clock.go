package together

import "slices"

// Sample is what one question about another clock has told. Times are in nanoseconds: Sent and Received by the clock of
// who asks, Came and Went by the clock that is asked.
type Sample struct{ Sent, Came, Went, Received int64 }

// Bounds of what is known of a clock.
const (
	// mostSamples is how many answers are remembered.
	mostSamples = 8
	// driftPart is the part of its age by which a sample gets worse: two clocks drift apart by 100 parts in a million
	// at most while the kernel steers them.
	driftPart = 10_000
)

// ahead is by how much the other clock is ahead, and bound by how much that may be wrong: the way there and the way
// back share the time that the question took, in an unknown proportion.
func (s Sample) ahead() (ahead, bound int64) {
	took := (s.Received - s.Sent) - (s.Went - s.Came)
	return (s.Came+s.Went)/2 - (s.Sent+s.Received)/2, took/2 + 1
}

// boundAt is the bound at a later time of the clock of who asked.
func (s Sample) boundAt(now int64) int64 {
	_, bound := s.ahead()
	return bound + max(0, now-s.Received)/driftPart
}

// Clock is what is known of another clock that nobody sets. The zero value knows nothing.
type Clock struct{ samples []Sample }

// Add takes in a sample. One that can't be, such as an answer that took longer there than here, is left out. Where a
// sample contradicts those before, the other clock, or this one, has stood still meanwhile (a machine that was
// suspended): what was known is forgotten.
func (c *Clock) Add(s Sample) {
	if s.Received < s.Sent || s.Went < s.Came || s.Went-s.Came > s.Received-s.Sent {
		return
	}
	ahead, bound := s.ahead()
	c.samples = slices.DeleteFunc(c.samples, func(o Sample) bool {
		was, _ := o.ahead()
		return max(was-ahead, ahead-was) > bound+o.boundAt(s.Received)
	})
	if len(c.samples) == mostSamples {
		c.samples = slices.Delete(c.samples, c.worst(s.Received), c.worst(s.Received)+1)
	}
	c.samples = append(c.samples, s)
}

// worst is the sample that tells least at that time.
func (c *Clock) worst(now int64) (at int) {
	for i, s := range c.samples {
		if s.boundAt(now) > c.samples[at].boundAt(now) {
			at = i
		}
	}
	return at
}

// Ahead is by how much the other clock is ahead of that of who asks, and by how much that may be wrong at the time now
// of the latter; false where nothing is known.
func (c *Clock) Ahead(now int64) (ahead, bound int64, known bool) {
	for _, s := range c.samples {
		if b := s.boundAt(now); !known || b < bound {
			ahead, _ = s.ahead()
			bound, known = b, true
		}
	}
	return ahead, bound, known
}

// Samples is how many answers are remembered.
func (c *Clock) Samples() int { return len(c.samples) }
