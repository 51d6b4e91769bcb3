package scenario

import (
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// position is a value's position in its file, counted from 1.
type position struct{ line, column int }

// decoder turns a YAML tree into Go values. It is strict — unknown and repeated fields are faults — and remembers the
// position of every value under its path ("links[1].a"), so that later checks can refer to it.
type decoder struct {
	at     map[string]position
	fault  func(position, string, ...any)
	config func(n *yaml.Node, path string, into reflect.Value) // reads an in-place configuration or definition
}

func nodeAt(n *yaml.Node) position { return position{n.Line, n.Column} }

// value decodes n into v.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.at[path] = nodeAt(n)
	if v.Type() == configType || v.Type() == definitionType {
		d.config(n, path, v)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, u)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	case reflect.Map:
		d.words(n, v)
	default:
		d.scalar(n, v)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fault(nodeAt(n), "a mapping belongs here, with some of the fields %s",
			strings.Join(fieldNames(v.Type()), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		field := fieldByName(v, name)
		switch {
		case !field.IsValid():
			d.fault(nodeAt(key), "unknown field %q; known here: %s", name, strings.Join(fieldNames(v.Type()), ", "))
		case seen[name]:
			d.fault(nodeAt(key), "field %q is here twice; keep one", name)
		default:
			d.value(value, field, join(path, name))
		}
		seen[name] = true
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fault(nodeAt(n), "a list belongs here; begin each element with a dash")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, e := range n.Content {
		d.value(e, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

// words decodes a mapping of text to text.
func (d *decoder) words(n *yaml.Node, v reflect.Value) {
	all := map[string]string{}
	if n.Kind != yaml.MappingNode || n.Decode(&all) != nil {
		d.fault(nodeAt(n), "a mapping of text to text belongs here, such as {rack: a}")
		return
	}
	v.Set(reflect.ValueOf(all))
}

func (d *decoder) text(n *yaml.Node, u encoding.TextUnmarshaler) {
	if n.Kind != yaml.ScalarNode {
		d.fault(nodeAt(n), "a single value belongs here")
		return
	}
	err := u.UnmarshalText([]byte(n.Value))
	if err == nil {
		return
	}
	switch u.(type) {
	case *netip.Prefix:
		d.fault(nodeAt(n), "%q is no address with its prefix length; write one such as 10.0.0.1/24", n.Value)
	case *netip.Addr:
		d.fault(nodeAt(n), "%q is no address; write one such as 10.0.0.1", n.Value)
	default:
		d.fault(nodeAt(n), "%v", err)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value) {
	wanted := map[reflect.Kind]string{reflect.String: "text", reflect.Int: "a whole number"}[v.Kind()]
	tagOK := v.Kind() == reflect.String || n.Tag == "!!int"
	if n.Kind != yaml.ScalarNode || !tagOK || n.Decode(v.Addr().Interface()) != nil {
		d.fault(nodeAt(n), "%s belongs here, not %q", wanted, n.Value)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func fieldByName(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if yamlName(v.Type().Field(i)) == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		names = append(names, yamlName(t.Field(i)))
	}
	slices.Sort(names)
	return names
}
