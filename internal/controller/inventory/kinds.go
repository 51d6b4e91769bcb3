package inventory

import (
	"maps"
	"slices"

	"heddle/internal/slice"
)

// KindNames are the kinds of objects that a definition of this version may have.
func KindNames() (names []string) {
	for _, kind := range Kinds() {
		names = append(names, string(kind))
	}
	return names
}

// KindsIn are the kinds of the objects in a set, in order.
func KindsIn(set *slice.Set) []string {
	used := map[string]bool{}
	for o := range set.All() {
		used[string(o.Kind)] = true
	}
	return slices.Sorted(maps.Keys(used))
}
