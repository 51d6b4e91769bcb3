package rpc

import (
	"encoding/json"
	"reflect"
	"strings"

	"heddle/internal/platform/store"
)

// Controllers of two versions share one store while they are updated one after the other. The older one keeps what it
// does not know when it writes an object anew, and the newer one makes no objects of kinds that the older does not
// know.

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
