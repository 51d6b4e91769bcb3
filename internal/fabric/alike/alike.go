package alike

import "slices"

// Trait is something that each thing has: an uplink, a switch, a VLAN.
type Trait[T any] struct {
	// What begins the sentence, as in "they leave by"; the value ends it.
	What string
	// Of returns a thing's value; "" where it has none.
	Of func(T) string
}

// Of returns what all of some have in common and the fewest of the rest have, fewer than half of them: "they leave by
// uplink2". Of two traits that say the same, it is the first. It returns "" where they share nothing of that kind.
func Of[T any](some, rest []T, traits []Trait[T]) string {
	best, fewest := "", (len(rest)+1)/2
	if len(some) == 0 {
		return ""
	}
	for _, t := range traits {
		value, others := t.Of(some[0]), 0
		if value == "" || slices.ContainsFunc(some, func(x T) bool { return t.Of(x) != value }) {
			continue
		}
		for _, x := range rest {
			if t.Of(x) == value {
				others++
			}
		}
		if others < fewest {
			best, fewest = t.What+" "+value, others
		}
	}
	return best
}
