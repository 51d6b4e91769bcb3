package peers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
)

// firstKinds are those that a controller knows that does not say which.
var firstKinds = []string{string(slice.Switch), string(slice.PortGroup), string(inventory.Template),
	string(inventory.Host)}

// kindsKnown are those that this controller knows.
func kindsKnown() string {
	var list []string
	for _, kind := range inventory.Kinds() {
		list = append(list, string(kind))
	}
	return strings.Join(list, " ")
}

// AllKnow refuses a definition with a kind of objects that a controller of the cluster does not know: it would hand its
// hosts less than there is.
func (r *Roster) AllKnow(next *slice.Set) error {
	used := map[slice.Kind]bool{}
	for o := range next.All() {
		used[o.Kind] = true
	}
	var lines []string
	for _, c := range r.Cluster() {
		known := strings.Fields(c.Kinds)
		if len(known) == 0 {
			known = firstKinds
		}
		for _, kind := range slices.Sorted(maps.Keys(used)) {
			if !slices.Contains(known, string(kind)) {
				lines = append(lines, fmt.Sprintf("controller %s at %s does not know objects of the kind %s: update "+
					"it first", NameOf(c), c.Address, kind))
			}
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
	}
	return nil
}
