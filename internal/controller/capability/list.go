package capability

import (
	"maps"
	"slices"

	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
)

// Takes reports whether the parts are told of the objects of a kind.
func (c *Capability) Takes(k store.Kind) bool {
	return slices.ContainsFunc(c.Kinds, func(own Kind) bool { return own.Name == k && !own.Unread })
}

// List is the capabilities that a program has, in the order in which their hooks are called.
type List []Capability

// Rules are those of all calls: of the core, and of the capabilities.
func (l List) Rules() access.Table {
	all := access.Rules()
	for _, c := range l {
		maps.Copy(all, c.Rules)
	}
	return all
}
