package pki

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// Controllers of two versions share a store. What a newer one wrote into a document, an older one keeps when it writes
// the document again.

// decodeKeeping reads a JSON object into a struct, and returns the fields that the struct has not.
func decodeKeeping(text []byte, into any) (map[string]json.RawMessage, error) {
	if err := json.Unmarshal(text, into); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			continue
		}
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		maps.DeleteFunc(all, func(k string, _ json.RawMessage) bool { return strings.EqualFold(k, name) })
	}
	return all, nil
}

// encodeKeeping writes a struct with the fields that decodeKeeping returned.
func encodeKeeping(of any, unknown map[string]json.RawMessage) ([]byte, error) {
	b, err := json.Marshal(of)
	if err != nil || len(unknown) == 0 {
		return b, err
	}
	more, err := json.Marshal(unknown)
	if err != nil {
		return nil, err
	}
	// Both are objects, and neither is empty.
	return append(append(b[:len(b)-1], ','), more[1:]...), nil
}
