package rpc

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/inventory"
	"heddle/internal/controller/store"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// Controllers of two versions share one store while they are updated one after the other. The older one keeps what it
// does not know when it writes an object anew, and the newer one makes no objects of kinds that the older does not
// know.

// keepUnknown adds to next, which a file says, the fields of what there is that this controller does not know: the file
// cannot have them. It names them.
func keepUnknown(have, next *slice.Set) (lines []string) {
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

// notShown says, as comments of the definition, what of it this controller does not know.
func notShown(have *slice.Set) string {
	var b strings.Builder
	for o := range have.All() {
		if _, left := fields.Controller().Without(o); len(left) > 0 {
			fmt.Fprintf(&b, "# %s\n", unknownHere(o.Key, left))
		}
	}
	return b.String()
}

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

// allKnow refuses a definition with a kind of objects that a controller of the cluster does not know: it would hand its
// hosts less than there is.
func (r *roster) allKnow(next *slice.Set) error {
	used := map[slice.Kind]bool{}
	for o := range next.All() {
		used[o.Kind] = true
	}
	var lines []string
	for _, c := range r.cluster() {
		known := strings.Fields(c.Kinds)
		if len(known) == 0 {
			known = firstKinds
		}
		for _, kind := range slices.Sorted(maps.Keys(used)) {
			if !slices.Contains(known, string(kind)) {
				lines = append(lines, fmt.Sprintf("controller %s at %s does not know objects of the kind %s: update "+
					"it first", nameOf(c), c.Address, kind))
			}
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
	}
	return nil
}

// rewritten is next as the document of an object that was another one: what a later version of this program has written
// there, and this one does not know, stays.
func rewritten(was store.Object, next any) (json.RawMessage, error) {
	text, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was.Doc, &before) != nil || json.Unmarshal(text, &after) != nil {
		return text, nil
	}
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(next)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = true
	}
	for name, value := range before {
		if !known[name] {
			after[name] = value
		}
	}
	return json.Marshal(after)
}
