package rpc

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"heddle/internal/platform/store"
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
