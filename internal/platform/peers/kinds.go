package peers

import (
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"
)

// firstKinds are the kinds of objects that a controller of the first version knows, which does not say which.
const firstKinds = "switch portGroup template hostEntry"

// AllKnow refuses a definition with a kind of objects that a controller of the cluster does not know: it would hand its
// hosts less than there is. used are the kinds that the definition has, in order.
func (r *Roster) AllKnow(used []string) error {
	var lines []string
	for _, c := range r.Cluster() {
		known := strings.Fields(c.Kinds)
		if len(known) == 0 {
			known = strings.Fields(firstKinds)
		}
		for _, kind := range used {
			if !slices.Contains(known, kind) {
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
