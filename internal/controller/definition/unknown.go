package definition

import (
	"fmt"
	"strings"

	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// KeepUnknown adds to next, which a file says, the fields of what there is that this controller does not know: the file
// cannot have them. It names them.
func KeepUnknown(have, next *slice.Set) (lines []string) {
	for o := range next.Clone().All() {
		was, ok := have.Get(o.Key)
		if !ok {
			continue
		}
		doc, kept := fields.Controller().Keep(was, o)
		if len(kept) == 0 {
			continue
		}
		next.Put(slice.Object{Key: o.Key, Doc: doc})
		lines = append(lines, unknownHere(o.Key, kept))
	}
	return lines
}

func unknownHere(k slice.Key, kept []string) string {
	return fmt.Sprintf("%s has %s, which this controller does not know and leaves as it is", k,
		strings.Join(kept, ", "))
}

// NotShown says, as comments of the definition, what of it this controller does not know.
func NotShown(have *slice.Set) string {
	var b strings.Builder
	for o := range have.All() {
		if _, left := fields.Controller().Without(o); len(left) > 0 {
			fmt.Fprintf(&b, "# %s\n", unknownHere(o.Key, left))
		}
	}
	return b.String()
}
