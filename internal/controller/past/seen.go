package past

import (
	"slices"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/visibility"
	"heddle/internal/platform/access/roles"
	"heddle/internal/slice"
)

// seenChange leaves of a change in the history what the caller sees; false where that is nothing.
func seenChange(a *roles.Access, c *controllerv1.DefinitionChange) bool {
	if a.SeesAll() {
		return true
	}
	c.Objects = slices.DeleteFunc(c.GetObjects(), func(line string) bool {
		kind, rest, _ := strings.Cut(line, " ")
		i := strings.LastIndexByte(rest, ' ')
		return i < 0 || !visibility.SeesNamed(a, slice.Key{Kind: slice.Kind(kind), Name: rest[:i]})
	})
	c.Left = 0
	return len(c.GetObjects()) > 0
}
