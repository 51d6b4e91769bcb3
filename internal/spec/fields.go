package spec

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// fieldSet is the fields a mapping may hold: their names in the order of the type, and where each is decoded to.
type fieldSet struct {
	names []string
	index map[string][]int
}

// fieldsOf reads the yaml tags of a struct type; an embedded struct's fields count as its own.
func (d *decoder) fieldsOf(t reflect.Type) fieldSet {
	if fs, ok := d.fields[t]; ok {
		return fs
	}
	fs := fieldSet{index: map[string][]int{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || !f.IsExported() {
			continue
		}
		fs.names = append(fs.names, name)
		fs.index[name] = f.Index
	}
	d.fields[t] = fs
	return fs
}

// label is a key as a path shows it.
func label(key *yaml.Node) string {
	if key.Kind != yaml.ScalarNode {
		return "?"
	}
	return shown(key.Value)
}

// unknown reports a key that type t has no field for, with the field that may have been meant.
func (d *decoder) unknown(key *yaml.Node, t reflect.Type, a at) {
	name := label(key)
	p := a.field(name)
	fields := d.fieldsOf(t)
	msg := "unknown field: the fields here are " + strings.Join(fields.names, ", ")
	if meant := nearest(name, fields.names); meant != "" {
		msg = fmt.Sprintf("unknown field: did you mean %s?", meant)
		d.src.markBad(a.field(meant))
	} else if inside := d.belongs(name, t, 2); inside != "" {
		msg = fmt.Sprintf("unknown field here: it belongs into %s", inside)
	} else if name == "<<" {
		msg = "merge keys are not read: write the fields out, or give a whole mapping by an alias"
	}
	d.src.markBad(p)
	d.add(position{key.Line, key.Column}, p.show(), "", msg)
}

// belongs finds the mapping under t, at most depth levels down, that has a field called name: "security.macLearning".
func (d *decoder) belongs(name string, t reflect.Type, depth int) string {
	fields := d.fieldsOf(t)
	for _, inside := range fields.names {
		ft := t.FieldByIndex(fields.index[inside]).Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() != reflect.Struct {
			continue
		}
		if _, ok := d.fieldsOf(ft).index[name]; ok {
			return inside
		}
		if depth > 1 {
			if deeper := d.belongs(name, ft, depth-1); deeper != "" {
				return inside + "." + deeper
			}
		}
	}
	return ""
}

// nearest is the known word most like word, "" when none is near: letter case apart, at most two edits and fewer than
// half of its letters.
func nearest(word string, known []string) string {
	best, bestDist := "", 3
	w := strings.ToLower(word)
	if len(w) > maxShown {
		return ""
	}
	for _, k := range known {
		if dist := edits(w, strings.ToLower(k)); dist < bestDist && 2*dist < len(k) {
			best, bestDist = k, dist
		}
	}
	return best
}

// Nearest is the known word that whoever wrote word most likely meant, "" when none is near.
func Nearest(word string, known []string) string { return nearest(word, known) }

// edits is the distance between two words, in bytes inserted, removed, replaced, or swapped with their neighbour (the
// optimal string alignment distance).
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
	}
	return row[len(b)]
}
