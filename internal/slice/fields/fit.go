package fields

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"heddle/internal/slice"
)

// Lack is a field of an object that a program does not know.
type Lack struct {
	Key slice.Key
	// Field is its place in the document, "" for an object of a kind that is not known: "security.promiscuous",
	// "teaming.policy=ip-hash".
	Field string
}

// String is the lack in a line: "portGroup dvs/web: security.promiscuous".
func (l Lack) String() string {
	if l.Field == "" {
		return l.Key.String()
	}
	return l.Key.String() + ": " + l.Field
}

// Security reports whether a port is less protected without the field than the definition says.
func (l Lack) Security() bool { return Security(string(l.Key.Kind) + "." + l.Field) }

// Fit is what of a slice a program can have that knows these fields, and what it lacks. A slice that fits is returned
// as it is.
func (s *Set) Fit(whole *slice.Set) (*slice.Set, []Lack) {
	var c slice.Change
	var lacks []Lack
	for o := range whole.All() {
		if !s.has[string(o.Kind)] {
			c.Removed, lacks = append(c.Removed, o.Key), append(lacks, Lack{Key: o.Key})
			continue
		}
		doc, left := s.Without(o)
		if len(left) == 0 {
			continue
		}
		c.Put = append(c.Put, slice.Object{Key: o.Key, Doc: doc})
		for _, f := range left {
			lacks = append(lacks, Lack{o.Key, f})
		}
	}
	if len(lacks) == 0 {
		return whole, nil
	}
	fits := whole.Clone()
	fits.Apply(c)
	return fits, lacks
}

// Without is the object's document without the fields that are not known, and these. A document that is no mapping is
// left as it is: whoever reads it finds that out.
func (s *Set) Without(o slice.Object) (doc []byte, left []string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(o.Doc, &fields) != nil {
		return o.Doc, nil
	}
	doc, left = s.strip(fields, string(o.Kind), "")
	if len(left) == 0 {
		return o.Doc, nil
	}
	return doc, left
}

// place is where a field of an object of the kind is in the set.
func place(at string) string {
	kind, field, _ := strings.Cut(at, ".")
	if kind == string(slice.Switch) {
		if in, ok := strings.CutPrefix(field, "defaults"); ok {
			return policy + in
		}
	}
	return kind + "." + field
}

// knows reports whether the field is known, at its own place or as a policy field.
func (s *Set) knows(at string) (string, bool) {
	if p := place(at); s.has[p] {
		return p, true
	}
	kind, field, _ := strings.Cut(at, ".")
	if kind == string(slice.Switch) {
		return "", false
	}
	p := policy + "." + field
	return p, s.has[p]
}

// strip takes what is not known out of a mapping at that place; show is the place as it is named to people.
func (s *Set) strip(fields map[string]json.RawMessage, at, show string) (doc []byte, left []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		here, shown := at+"."+name, strings.TrimPrefix(show+"."+name, ".")
		p, known := s.knows(here)
		if !known {
			left = append(left, shown)
			delete(fields, name)
			continue
		}
		value, lacking := s.stripValue(fields[name], here, shown, p)
		if len(lacking) == 0 {
			continue
		}
		left = append(left, lacking...)
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	// Never fails: it was read from JSON.
	doc, _ = json.Marshal(fields)
	return doc, left
}

// stripValue does it for the value of a field. Without what is not known there may be none: nil.
func (s *Set) stripValue(raw json.RawMessage, at, show, p string) (json.RawMessage, []string) {
	if s.words[p] {
		return nil, s.strange(raw, show, p)
	}
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	switch {
	case !s.inner[p]:
	case json.Unmarshal(raw, &fields) == nil && fields != nil:
		return s.strip(fields, at, show)
	case json.Unmarshal(raw, &items) == nil && items != nil:
		return s.stripItems(items, at, show)
	}
	return nil, nil
}

func (s *Set) stripItems(items []json.RawMessage, at, show string) (json.RawMessage, []string) {
	var left []string
	for i, item := range items {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil {
			continue
		}
		name := itemName(fields)
		if doc, lacking := s.strip(fields, at, show+"["+name+"]"); len(lacking) > 0 {
			items[i], left = doc, append(left, lacking...)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	// Never fails: it was read from JSON.
	raw, _ := json.Marshal(items)
	return raw, left
}

func itemName(fields map[string]json.RawMessage) string {
	var name string
	if json.Unmarshal(fields["name"], &name) != nil {
		return ""
	}
	return name
}

// strange are the words of a field's value that are not known.
func (s *Set) strange(raw json.RawMessage, show, p string) (left []string) {
	var list []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, word := range list {
		if !s.has[p+"="+word] {
			left = append(left, show+"="+word)
		}
	}
	return left
}

// Keep is a document written by a program that knows these fields, in place of another one: fields of the one before
// that the program does not know stay. kept names them.
func (s *Set) Keep(was, next slice.Object) (doc []byte, kept []string) {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was.Doc, &before) != nil || json.Unmarshal(next.Doc, &after) != nil {
		return next.Doc, nil
	}
	if kept = s.keep(before, after, string(next.Kind), ""); len(kept) == 0 {
		return next.Doc, nil
	}
	// Never fails: it was read from JSON.
	doc, _ = json.Marshal(after)
	return doc, kept
}

func (s *Set) keep(before, after map[string]json.RawMessage, at, show string) (kept []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		here, shown := at+"."+name, strings.TrimPrefix(show+"."+name, ".")
		p, known := s.knows(here)
		if !known {
			after[name], kept = before[name], append(kept, shown)
			continue
		}
		if !s.inner[p] {
			continue
		}
		value, more := s.keepIn(before[name], after[name], here, shown)
		if len(more) > 0 {
			after[name], kept = value, append(kept, more...)
		}
	}
	return kept
}

// keepIn does it for the value of a field, in a mapping or in those of a list that have the same name.
func (s *Set) keepIn(was, next json.RawMessage, at, show string) (json.RawMessage, []string) {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was, &before) == nil && before != nil {
		if json.Unmarshal(next, &after) != nil || after == nil {
			after = map[string]json.RawMessage{}
		}
		kept := s.keep(before, after, at, show)
		// Never fails: it was read from JSON.
		doc, _ := json.Marshal(after)
		return doc, kept
	}
	var all, items []map[string]json.RawMessage
	if json.Unmarshal(was, &all) != nil || json.Unmarshal(next, &items) != nil {
		return next, nil
	}
	var kept []string
	for _, item := range items {
		name := itemName(item)
		i := slices.IndexFunc(all, func(o map[string]json.RawMessage) bool { return itemName(o) == name })
		if i >= 0 && name != "" {
			kept = append(kept, s.keep(all[i], item, at, show+"["+name+"]")...)
		}
	}
	// Never fails: it was read from JSON.
	doc, _ := json.Marshal(items)
	return doc, kept
}
