package ipfix

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Variable is the length of a field whose values each state their own length (RFC 7011 §7).
const Variable = 65535

// Limits of the format.
const (
	version         = 10                                          // RFC 7011 §3.1
	headerLength    = 16                                          // of a message (RFC 7011 §3.1)
	setHeaderLength = 4                                           // RFC 7011 §3.3.2
	maxMessage      = 65535                                       // bytes, RFC 7011 §3.1
	maxRecord       = maxMessage - headerLength - setHeaderLength // bytes, of templates too
	firstDataSet    = 256                                         // the least template id (RFC 7011 §3.4.1)
	enterpriseBit   = 0x8000                                      // of an element's number in a template, RFC 7011 §3.2
)

// Set ids of templates (RFC 7011 §3.3.2).
const (
	templateSet        = 2
	optionsTemplateSet = 3
)

// Field is one column of a template (RFC 7011 §3.2).
type Field struct {
	PEN    uint32
	ID     uint16 // 1–32767
	Length uint16 // bytes on the wire; Variable if each value states it
}

// Element is what the registry knows of the field's element.
func (f Field) Element() Element {
	e, _ := Lookup(f.PEN, f.ID)
	return e
}

// Fields makes fields from the names of registered elements. "octetDeltaCount" has the length of its type,
// "octetDeltaCount/4" the given length (reduced-size encoding, RFC 7011 §6.2, or the length of strings and bytes),
// "interfaceName" has variable length.
func Fields(names ...string) ([]Field, error) {
	fields := make([]Field, 0, len(names))
	for _, spec := range names {
		name, size, sized := strings.Cut(spec, "/")
		e, ok := Named(name)
		if !ok {
			return nil, fmt.Errorf("the registry has no element %q", name)
		}
		f := Field{PEN: e.PEN, ID: e.ID, Length: Variable}
		if _, greatest := e.Type.Lengths(); greatest < Variable-1 {
			f.Length = uint16(greatest)
		}
		if sized {
			n, err := strconv.ParseUint(size, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("field %q: the length after the slash is not a number of bytes", spec)
			}
			f.Length = uint16(n)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// Template is the layout of records (RFC 7011 §3.4). It does not change and may be used by several goroutines.
type Template struct {
	id       uint16
	scope    int // fields that are scope; 0 = no options template
	fields   []Field
	offsets  []uint16 // of each field in a record, up to and including the first variable one
	length   int      // of a record; the least one if variable
	variable bool
}

// NewTemplate makes the template of flow records. The id is 256–65535, and fields of registered elements must have a
// length that their type allows.
func NewTemplate(id uint16, fields ...Field) (*Template, error) { return newChecked(id, 0, fields) }

// NewOptionsTemplate makes the template of options records. Such records describe the thing that the first fields, at
// least one, name: the scope (RFC 7011 §3.4.2).
func NewOptionsTemplate(id uint16, scope int, fields ...Field) (*Template, error) {
	if scope < 1 || scope > len(fields) {
		return nil, fmt.Errorf("options template %d: %d of %d fields are its scope, want at least one and not more "+
			"than there are", id, scope, len(fields))
	}
	return newChecked(id, scope, fields)
}

// newChecked makes a template for sending.
func newChecked(id uint16, scope int, fields []Field) (*Template, error) {
	if id < firstDataSet {
		return nil, fmt.Errorf("template %d: want an id of 256 or more", id)
	}
	for i, f := range fields {
		if f.ID == 0 || f.ID&enterpriseBit != 0 {
			return nil, fmt.Errorf("template %d: field %d: element %d is not in 1–32767", id, i, f.ID)
		}
		if e, known := Lookup(f.PEN, f.ID); known && !e.Type.fits(f.Length) {
			return nil, fmt.Errorf("template %d: field %d: %s is of type %s, which cannot have %d bytes", id, i, e,
				e.Type, f.Length)
		}
	}
	t := compile(id, scope, slices.Clone(fields))
	if t.length == 0 {
		return nil, fmt.Errorf("template %d: its records are empty", id)
	}
	if t.length > maxRecord || t.recordLength() > maxRecord {
		return nil, fmt.Errorf("template %d: with its %d fields and records of %d bytes it does not fit into a message",
			id, len(fields), t.length)
	}
	return t, nil
}

// compile computes the positions of fields.
func compile(id uint16, scope int, fields []Field) *Template {
	t := &Template{id: id, scope: scope, fields: fields}
	for _, f := range fields {
		if !t.variable {
			t.offsets = append(t.offsets, uint16(min(t.length, maxMessage)))
		}
		if f.Length == Variable {
			t.variable = true
			t.length++ // the byte that says how many follow
			continue
		}
		t.length += int(f.Length)
	}
	return t
}

// ID is the number of the template, and of the data sets that follow it: 256–65535.
func (t *Template) ID() uint16 { return t.id }

// Options reports whether it is an options template.
func (t *Template) Options() bool { return t.scope > 0 }

// Scope is how many of the first fields are the scope of an options template; 0 for other templates.
func (t *Template) Scope() int { return t.scope }

// Len is the number of fields.
func (t *Template) Len() int { return len(t.fields) }

// Field is the i-th field from 0.
func (t *Template) Field(i int) Field { return t.fields[i] }

// RecordLength is the length of a record in bytes, or the least length if fields are variable.
func (t *Template) RecordLength() int { return t.length }

// Variable reports whether a field has variable length, so that records are made by Append and not by Record.
func (t *Template) Variable() bool { return t.variable }

// Index is the index of the first field with the element, -1 when there is none.
func (t *Template) Index(pen uint32, id uint16) int {
	for i, f := range t.fields {
		if f.ID == id && f.PEN == pen {
			return i
		}
	}
	return -1
}

// same reports whether both templates have the same layout.
func (t *Template) same(o *Template) bool {
	return t.scope == o.scope && slices.Equal(t.fields, o.fields)
}

// recordLength is the length of the template record itself, in a template set.
func (t *Template) recordLength() int {
	n := 4
	if t.Options() {
		n += 2
	}
	for _, f := range t.fields {
		n += 4
		if f.PEN != IANA {
			n += 4
		}
	}
	return n
}

// set is the id of the set in which the template is sent.
func (t *Template) set() uint16 {
	if t.Options() {
		return optionsTemplateSet
	}
	return templateSet
}

// padding limits the zero bytes after records of the template: there must be fewer than a record has (RFC 7011 §3.3.1).
// Values of variable length do not count, because some collectors ignore them when they check whether another record
// follows.
func (t *Template) padding() int {
	n := 0
	for _, f := range t.fields {
		if f.Length != Variable {
			n += int(f.Length)
		}
	}
	return n
}

// measure is the length of the record at the beginning of the bytes, or the offset of a fault. Its error wraps errShort
// if the bytes end before the record does. The positions of the fields are appended to places, unless that is nil.
func (t *Template) measure(b []byte, places []Place) (int, []Place, error) {
	at := 0
	for i, f := range t.fields {
		start, n, err := span(b, at, f.Length)
		if err != nil {
			return at, places, fmt.Errorf("field %d, %s: %w", i, f.Element(), err)
		}
		if places != nil {
			places = append(places, Place{uint16(start), uint16(n)})
		}
		at = start + n
	}
	return at, places, nil
}

// errShort says that bytes end within a field.
var errShort = errors.New("the record ends within a field")

// span finds the value of a field at an offset: the start and number of its bytes (RFC 7011 §7).
func span(b []byte, at int, length uint16) (start, n int, err error) {
	start, n = at, int(length)
	if length == Variable {
		start++
		if start > len(b) {
			return at, 0, errShort
		}
		if n = int(b[at]); n == 255 {
			if start += 2; start > len(b) {
				return at, 0, errShort
			}
			n = int(b[at+1])<<8 | int(b[at+2])
		}
	}
	if start+n > len(b) {
		return at, 0, fmt.Errorf("%w: a value of %d bytes where %d are left", errShort, n, len(b)-start)
	}
	return start, n, nil
}
