package spec

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec/known"
)

// fieldSet is the fields that a mapping may have: their names in the order of the type, and where each is decoded to.
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

// label is the form of a key in a path.
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
	if meant := known.Nearest(name, fields.names); meant != "" {
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
