package fields

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"heddle/internal/plan"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// policy is the place of the policy fields.
const policy = "policy"

// Set is the fields that a program knows. It does not change.
type Set struct {
	text  string
	has   map[string]bool // fields, the mappings that they are in, and FIELD=WORD
	inner map[string]bool // the mappings
	words map[string]bool // fields whose values are words
}

// first is what agents know that do not say it: those of the version before the one that says it.
//
//go:embed first.txt
var first string

// First is what agents know that do not say what they know.
var First = sync.OnceValue(func() *Set { return Parse(first) })

// Known is what this program knows. It is made of the types that read a configuration and of the table of policy
// fields.
var Known = sync.OnceValue(func() *Set {
	var list []string
	skip := map[string]bool{"switch.portGroups": true, "switch.defaults": true}
	for kind, t := range map[slice.Kind]reflect.Type{slice.Switch: reflect.TypeFor[spec.Switch](),
		slice.PortGroup: reflect.TypeFor[spec.PortGroup](), slice.Port: reflect.TypeFor[spec.Port](),
		slice.StaticPort: reflect.TypeFor[spec.PortSettings]()} {
		list = append(list, walk(t, string(kind), skip)...)
	}
	list = append(list, walk(reflect.TypeFor[spec.Policy](), policy, nil)...)
	for _, f := range plan.Fields() {
		if f.Kind == plan.KindTruth {
			continue
		}
		for _, word := range f.Words() {
			list = append(list, policy+"."+f.Path+"="+word)
		}
	}
	slices.Sort(list)
	return Parse(strings.Join(slices.Compact(list), "\n"))
})

// Controller is what this program knows as a controller: it has objects besides that are not handed to hosts.
var Controller = sync.OnceValue(func() *Set {
	list := []string{Known().Text()}
	list = append(list, walk(reflect.TypeFor[spec.HostTemplate](), "template", nil)...)
	list = append(list, walk(reflect.TypeFor[spec.HostEntry](), "hostEntry", nil)...)
	return Parse(strings.Join(list, "\n"))
})

// walk lists the fields of a type. Policy fields are left out but at their own place.
func walk(t reflect.Type, at string, skip map[string]bool) (list []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(reflect.TypeFor[json.Marshaler]()) {
		return []string{at}
	}
	for f := range fieldsOf(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[spec.Policy](): // at its own place
		case f.Anonymous && name == "":
			list = append(list, walk(f.Type, at, skip)...)
		case f.IsExported() && name != "" && name != "-" && !skip[at+"."+name]:
			list = append(list, walk(f.Type, at+"."+name, skip)...)
		}
	}
	return list
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// Parse reads what Text makes. Lines that mean nothing here are kept, as they may to others.
func Parse(text string) *Set {
	s := &Set{text: text, has: map[string]bool{}, inner: map[string]bool{}, words: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		field, _, word := strings.Cut(line, "=")
		if word {
			s.has[line], s.words[field] = true, true
		}
		s.has[field] = true
		for i := strings.LastIndexByte(field, '.'); i > 0; i = strings.LastIndexByte(field, '.') {
			field = field[:i]
			s.has[field], s.inner[field] = true, true
		}
	}
	return s
}

// Text is the set in words, a field in each line.
func (s *Set) Text() string { return s.text }

// Security reports whether a field that is missing makes a port less protected than the definition says.
func Security(field string) bool {
	_, field, _ = strings.Cut(field, ".")
	field = strings.TrimPrefix(field, "defaults.")
	category, _, _ := strings.Cut(field, ".")
	return category == "security" || category == "firewall" || category == "filter"
}
