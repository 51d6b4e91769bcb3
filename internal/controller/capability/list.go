package capability

import (
	"maps"

	"heddle/internal/platform/access"
)

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
