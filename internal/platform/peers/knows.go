package peers

import (
	"slices"
	"strings"
)

// KnowsRevoked is what a controller knows that reads each revocation from an object of its own. An earlier version
// reads the one list alone.
const KnowsRevoked = "revoked"

// knownHere are such words of this version, with spaces between.
func knownHere() string { return KnowsRevoked }

// Without are the controllers that do not say that they know something, by name: those of an earlier version.
func (r *Roster) Without(word string) []Controller {
	return slices.DeleteFunc(r.Cluster(), func(c Controller) bool {
		return slices.Contains(strings.Fields(c.Knows), word)
	})
}
