package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec knows which fields of types and messages belong together. Its zero value is ready for use; any number of
// goroutines may use it.
type Codec struct {
	// Lenient: a word that the schema lacks is left out, which is right for an answer. Without it the value is refused,
	// which is right for a request.
	Lenient bool
	layouts sync.Map // pair → *layout
}

// pair is a struct and a message.
type pair struct {
	t reflect.Type
	m protoreflect.MessageDescriptor
}

// layout is the list of fields that a struct and a message have in common.
type layout struct {
	fields []field
}

// field is a field of a struct, or of one that it embeds, and one of a message.
type field struct {
	index []int
	fd    protoreflect.FieldDescriptor
	// empty: an empty list is not nil.
	empty bool
	link
}

// link carries one value. put is not called with a zero value, nor get for a field that is not set; v may be set
// already.
type link struct {
	put func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error
	get func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error
}

// Put writes v, a struct or a pointer to one, into the empty message m. v may be nil for an empty message.
func (c *Codec) Put(v any, m proto.Message) error {
	rv := reflect.ValueOf(v)
	for rv.IsValid() && rv.Kind() == reflect.Pointer {
		rv = rv.Elem()
	}
	if !rv.IsValid() {
		return nil
	}
	return c.put(rv, m.ProtoReflect())
}

// Get reads m into the struct that v points to.
func (c *Codec) Get(m proto.Message, v any) error {
	return c.get(m.ProtoReflect(), reflect.ValueOf(v).Elem())
}

// PutAnswer writes v into the only field of m, an answer; if the answer has no field, v is not used.
func (c *Codec) PutAnswer(v any, m proto.Message) error {
	l, fd, err := c.answer(reflect.TypeOf(v), m)
	rv := reflect.ValueOf(v)
	if err != nil || fd == nil || rv.IsZero() {
		return err
	}
	return l.put(rv, m.ProtoReflect(), fd)
}

// GetAnswer reads the only field of m into the value that v points to.
func (c *Codec) GetAnswer(m proto.Message, v any) error {
	rv := reflect.ValueOf(v).Elem()
	l, fd, err := c.answer(rv.Type(), m)
	if err != nil || fd == nil {
		return err
	}
	if !m.ProtoReflect().Has(fd) {
		switch rv.Kind() {
		case reflect.Slice:
			rv.Set(reflect.MakeSlice(rv.Type(), 0, 0))
		case reflect.Pointer:
			rv.Set(reflect.New(rv.Type().Elem()))
		}
		return nil
	}
	return l.get(m.ProtoReflect(), fd, rv)
}

func (c *Codec) answer(t reflect.Type, m proto.Message) (link, protoreflect.FieldDescriptor, error) {
	fields := m.ProtoReflect().Descriptor().Fields()
	if fields.Len() == 0 {
		return link{}, nil, nil
	}
	fd := fields.ByNumber(1)
	l, err := c.link(t, fd)
	return l, fd, err
}

func (c *Codec) put(v reflect.Value, m protoreflect.Message) error {
	p, err := c.layout(v.Type(), m.Descriptor())
	if err != nil {
		return err
	}
	for _, f := range p.fields {
		fv := v.FieldByIndex(f.index)
		if fv.IsZero() {
			continue
		}
		if err := f.put(fv, m, f.fd); err != nil {
			return &FieldError{f.fd.JSONName(), err}
		}
	}
	return nil
}

func (c *Codec) get(m protoreflect.Message, v reflect.Value) error {
	p, err := c.layout(v.Type(), m.Descriptor())
	if err != nil {
		return err
	}
	for _, f := range p.fields {
		fv := v.FieldByIndex(f.index)
		if !m.Has(f.fd) {
			if f.empty && fv.Kind() == reflect.Slice {
				fv.Set(reflect.MakeSlice(fv.Type(), 0, 0))
			}
			continue
		}
		if err := f.get(m, f.fd, fv); err != nil {
			return &FieldError{f.fd.JSONName(), err}
		}
	}
	return nil
}

// FieldError names the field whose value can't be carried.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

func (c *Codec) layout(t reflect.Type, m protoreflect.MessageDescriptor) (*layout, error) {
	if p, ok := c.layouts.Load(pair{t, m}); ok {
		return p.(*layout), nil
	}
	p := &layout{}
	if err := c.fill(p, t, nil, m); err != nil {
		return nil, err
	}
	if err := complete(p, t, m); err != nil {
		return nil, err
	}
	c.layouts.Store(pair{t, m}, p)
	return p, nil
}

// complete returns an error unless every field of a message is carried.
func complete(p *layout, t reflect.Type, m protoreflect.MessageDescriptor) error {
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		if !slices.ContainsFunc(p.fields, func(f field) bool { return f.fd.Number() == fd.Number() }) {
			return fmt.Errorf("%s has no field %q, which message %s has", t, fd.JSONName(), m.FullName())
		}
	}
	return nil
}

// fill adds the fields of the struct type t, which is at that index of the layout's struct.
func (c *Codec) fill(p *layout, t reflect.Type, index []int, m protoreflect.MessageDescriptor) error {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int{}, index...), i)
		name, empty := fieldName(f)
		switch {
		case !f.IsExported() || name == "-":
			continue
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			if err := c.fill(p, f.Type, at, m); err != nil {
				return err
			}
			continue
		case name == "":
			return fmt.Errorf("%s.%s has no name in JSON and none for the contract", t, f.Name)
		}
		fd := m.Fields().ByJSONName(name)
		if fd == nil {
			return fmt.Errorf("%s.%s: message %s has no field %q", t, f.Name, m.FullName(), name)
		}
		l, err := c.link(f.Type, fd)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		p.fields = append(p.fields, field{at, fd, empty, l})
	}
	return nil
}

// fieldName returns a field's name in the contract; empty reports whether JSON has an empty list if there is nothing.
func fieldName(f reflect.StructField) (name string, empty bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if w, ok := f.Tag.Lookup("wire"); ok {
		name = w
	}
	return name, options == ""
}
