package fields

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Change is another value of a field of a document.
type Change struct {
	// Field is its place: "vlan.access", "uplinks[uplink1].vlans".
	Field string
	// Old and New are JSON, "" for none.
	Old, New string
}

// Diff is what makes one document the other, by field. Those that are no mappings differ as a whole.
func Diff(was, next []byte) []Change {
	return diff("", was, next)
}

func diff(at string, was, next json.RawMessage) (list []Change) {
	if bytes.Equal(was, next) {
		return nil
	}
	before, after, ok := parts(was, next)
	if !ok {
		return []Change{{at, string(was), string(next)}}
	}
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list = append(list, diff(strings.TrimPrefix(at+name, "."), before[name], after[name])...)
	}
	return list
}

// parts are the fields of two mappings, as ".NAME", or the items of two lists whose items all have names, as "[NAME]".
// One that is absent has none.
func parts(was, next json.RawMessage) (before, after map[string]json.RawMessage, ok bool) {
	before, isMap := mapping(was)
	after, isMapToo := mapping(next)
	if isMap && isMapToo && len(was)+len(next) > 0 {
		return before, after, true
	}
	before, named := items(was)
	after, namedToo := items(next)
	return before, after, named && namedToo
}

func mapping(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, false
	}
	dotted := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		dotted["."+name] = value
	}
	return dotted, true
}

func items(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	named := map[string]json.RawMessage{}
	for _, item := range list {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil || itemName(fields) == "" {
			return nil, false
		}
		named["["+itemName(fields)+"]"] = item
	}
	return named, true
}
