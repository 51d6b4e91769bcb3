package spec

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxValues limits how many values a file may have once its aliases are followed, so that a small file cannot cause
// unbounded work. 1,000 ports have some 10,000. maxDefinitionValues limits a definition's: 100 switches with 1,000 port
// groups each, as an import makes them, have 1,500,000.
const (
	MaxValues           = 200_000
	maxDefinitionValues = 2_000_000
)

// marksPerValue is how many lines and marks such as colons and dashes are allowed per value, including comments; a key
// with its value is two values and has two marks.
const marksPerValue = 2

// decoder fills the types of this package from YAML nodes. Unlike the YAML library's own decoding it continues after a
// fault, remembers the position of every value, and suggests which field may have been meant.
type decoder struct {
	found  collection
	src    *source
	into   map[uint64]position // where positions go
	values int
	most   int // values
	fields map[reflect.Type]fieldSet
	// named reads a mapping of objects by name where a list of them is expected.
	named bool
}

func newDecoder(file string) *decoder {
	s := newSource(file)
	return &decoder{found: collection{bounded: true}, src: s, into: s.pos, fields: map[reflect.Type]fieldSet{},
		most: MaxValues}
}

// document decodes a whole document into a Config or a Definition; one without content leaves it empty.
func (d *decoder) document(doc *yaml.Node, into any) {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		doc = doc.Content[0]
	}
	d.value(doc, reflect.ValueOf(into).Elem(), at{})
}

func (d *decoder) add(p position, path, value, msg string) {
	d.addFault(p, Fault{Path: path, Value: value, Message: msg})
}

// addFault adds a fault of that position.
func (d *decoder) addFault(p position, f Fault) {
	if d.found.takes(p) {
		f.File, f.Line, f.Column = d.src.file, p.line, p.column
		d.found.add(f)
	}
}

// fault reports that the value at n could not be read.
func (d *decoder) fault(n *yaml.Node, a at, format string, args ...any) {
	d.src.markBad(a)
	d.add(position{n.Line, n.Column}, a.show(), nodeText(n), fmt.Sprintf(format, args...))
}

// value decodes n into v, whose type limits the depth: an alias that contains itself ends at a type mismatch.
func (d *decoder) value(n *yaml.Node, v reflect.Value, a at) {
	if d.values++; d.values > d.most {
		if d.values == d.most+1 {
			d.src.markBad(at{})
			d.addFault(position{n.Line, n.Column}, Fault{Path: a.show(), TooMuch: true,
				Message: fmt.Sprintf("more than %d values, aliases followed: write a smaller file", d.most)})
		}
		return
	}
	d.into[a.key] = position{n.Line, n.Column}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, a)
	case reflect.Slice:
		d.list(n, v, a)
	case reflect.Pointer:
		d.pointer(n, v, a)
	case reflect.Map:
		d.words(n, v, a)
	default:
		d.scalar(n, v, a)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// pointer decodes a value whose absence means "inherited".
func (d *decoder) pointer(n *yaml.Node, v reflect.Value, a at) {
	if isNull(n) && v.Type().Elem().Kind() == reflect.Slice {
		d.fault(n, a, "write [] for none, or leave the field out to inherit it")
		return
	}
	if isNull(n) && v.Type().Elem().Kind() == reflect.Struct {
		return
	}
	p := reflect.New(v.Type().Elem())
	d.value(n, p.Elem(), a)
	if !d.src.bad[a.key] {
		v.Set(p)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, a at) {
	if isNull(n) {
		return
	}
	if key := d.keyOf(v.Type().Elem()); key != "" && n.Kind == yaml.MappingNode && n.ShortTag() == "!!map" {
		d.byName(n, v, a, key)
		return
	}
	if n.Kind != yaml.SequenceNode || n.ShortTag() != "!!seq" {
		d.fault(n, a, "must be a list%s", listExample(a))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(len(n.Content), 1024)))
	for i, c := range n.Content {
		if d.values > d.most {
			return
		}
		v.Grow(1)
		v.SetLen(i + 1)
		d.value(c, v.Index(i), a.item(i, nodeName(c)))
	}
}

// words decodes a mapping of text to text, whose keys are the user's own.
func (d *decoder) words(n *yaml.Node, v reflect.Value, a at) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		d.fault(n, a, "must be a mapping of words, such as {rack: a}")
		return
	}
	words := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && d.values <= d.most; i += 2 {
		key, under := n.Content[i], a.field(label(n.Content[i]))
		if key.Kind != yaml.ScalarNode {
			d.fault(key, under, "must be a word")
			continue
		}
		if _, twice := words[key.Value]; twice {
			d.fault(key, under, "given twice: keep one")
			continue
		}
		word := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], word, under)
		words[key.Value] = word.String()
	}
	v.Set(reflect.ValueOf(words))
}

// listExample shows how to write a list for the field at a, if an example helps.
func listExample(a at) string {
	switch a.step {
	case "trunk", "vlans":
		return `, such as [10, "20-30"]`
	case "active", "standby":
		return ", such as [uplink1, uplink2]; [] is none"
	case "addresses":
		return `, such as ["192.0.2.1/24"]`
	}
	return ""
}

// nodeName is the name in a list's element, "" if it has none.
func nodeName(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" && n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i+1].Value
		}
	}
	return ""
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, a at) {
	if isNull(n) {
		return
	}
	fields := d.fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		d.fault(n, a, "must be a mapping with fields out of %s", strings.Join(fields.names, ", "))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			d.unknown(key, v.Type(), a)
			continue
		}
		if line, dup := first[key.Value]; dup {
			d.add(position{key.Line, key.Column}, a.field(label(key)).show(), "",
				fmt.Sprintf("given twice, first on line %d: keep one", line))
			continue
		}
		first[key.Value] = key.Line
		index, ok := fields.index[key.Value]
		if len(index) > 1 { // a field of the embedded policy
			d.into[fieldKey(a.key, ofPolicy)] = position{key.Line, key.Column}
		}
		switch value := n.Content[i+1]; {
		case !ok:
			d.unknown(key, v.Type(), a)
		case a.key == 0 && key.Value == "ports":
			d.portsSection(value, func() { d.value(value, v.FieldByIndex(index), a.field(key.Value)) })
		default:
			d.value(value, v.FieldByIndex(index), a.field(key.Value))
		}
	}
}

// scalar decodes text, a number or a truth value, each only from its own kind of YAML scalar.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, a at) {
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fault(n, a, "must be %s", kindName(v.Kind()))
	case tag == "!!null":
		d.fault(n, a, "has no value: write %s, or leave the field out", kindName(v.Kind()))
	case v.Kind() == reflect.String:
		switch tag {
		case "!!str", "!!int", "!!float", "!!timestamp":
			v.SetString(n.Value)
		default:
			d.fault(n, a, "must be text: put it in quotes")
		}
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(n.Value))
		if tag != "!!bool" || err != nil {
			d.fault(n, a, "must be true or false")
			return
		}
		v.SetBool(b)
	default:
		i, ok := decimal(n.Value)
		if tag != "!!int" || !ok {
			d.fault(n, a, "must be a whole number in decimal, without quotes")
			return
		}
		v.SetInt(int64(i))
	}
}

// decimal reads a plain decimal number. A leading zero is refused: YAML readers differ on whether it means octal.
func decimal(s string) (int, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '+' || (len(digits) > 1 && digits[0] == '0') {
		return 0, false
	}
	i, err := strconv.Atoi(s)
	return i, err == nil
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

// nodeText is what a fault quotes of n: a scalar as it is, a list of scalars in brackets, nothing of a mapping.
func nodeText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.ScalarNode:
		if isNull(n) {
			return n.Value
		}
		return shown(n.Value)
	case yaml.SequenceNode:
		var parts []string
		for size, i := 0, 0; i < len(n.Content) && size <= maxShown; i++ {
			text := "…"
			if c := n.Content[i]; c.Kind == yaml.ScalarNode {
				text = c.Value
			}
			parts, size = append(parts, text), size+len(text)+2
		}
		return shown("[" + strings.Join(parts, ", ") + "]")
	}
	return ""
}
