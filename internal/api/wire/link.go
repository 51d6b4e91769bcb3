package wire

import (
	"fmt"
	"reflect"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// scalar carries a value that is not a list: to writes it, for a message into fresh; from reads it.
type scalar struct {
	to   func(v reflect.Value, fresh protoreflect.Value) (protoreflect.Value, error)
	from func(p protoreflect.Value, v reflect.Value) error
}

// link returns how values of type t are carried by a field of a message.
func (c *Codec) link(t reflect.Type, fd protoreflect.FieldDescriptor) (link, error) {
	if l, ok := c.special(t, fd); ok {
		return l, nil
	}
	switch {
	case fd.IsMap():
		return c.mapLink(t, fd)
	case fd.IsList():
		return c.listLink(t, fd)
	case t.Kind() == reflect.Pointer:
		return c.pointerLink(t, fd)
	}
	s, err := c.scalar(t, fd)
	if err != nil {
		return link{}, err
	}
	return single(s), nil
}

// single carries a value in a field that is not a list.
func single(s scalar) link {
	return link{
		put: func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
			var fresh protoreflect.Value
			if fd.Message() != nil {
				fresh = m.NewField(fd)
			}
			p, err := s.to(v, fresh)
			if err == nil {
				m.Set(fd, p)
			}
			return err
		},
		get: func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
			return s.from(m.Get(fd), v)
		},
	}
}

// pointerLink carries a value that may be absent.
func (c *Codec) pointerLink(t reflect.Type, fd protoreflect.FieldDescriptor) (link, error) {
	if !fd.HasPresence() {
		return link{}, fmt.Errorf("%s may be absent, and field %s can't be", t, fd.FullName())
	}
	s, err := c.scalar(t.Elem(), fd)
	if err != nil {
		return link{}, err
	}
	one := single(s)
	return link{
		put: func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
			return one.put(v.Elem(), m, fd)
		},
		get: func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
			v.Set(reflect.New(t.Elem()))
			return one.get(m, fd, v.Elem())
		},
	}, nil
}

func (c *Codec) listLink(t reflect.Type, fd protoreflect.FieldDescriptor) (link, error) {
	if t.Kind() != reflect.Slice {
		return link{}, fmt.Errorf("%s is no list, and field %s is", t, fd.FullName())
	}
	s, err := c.scalar(t.Elem(), fd)
	if err != nil {
		return link{}, err
	}
	return link{
		put: func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
			list := m.Mutable(fd).List()
			for i := range v.Len() {
				var fresh protoreflect.Value
				if fd.Message() != nil {
					fresh = list.NewElement()
				}
				p, err := s.to(v.Index(i), fresh)
				if err != nil {
					return err
				}
				list.Append(p)
			}
			return nil
		},
		get: func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
			list := m.Get(fd).List()
			v.Set(reflect.MakeSlice(t, list.Len(), list.Len()))
			for i := range list.Len() {
				if err := s.from(list.Get(i), v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// mapLink carries a map whose keys are strings and whose values are not messages.
func (c *Codec) mapLink(t reflect.Type, fd protoreflect.FieldDescriptor) (link, error) {
	if t.Kind() != reflect.Map || t.Key().Kind() != reflect.String || fd.MapKey().Kind() != protoreflect.StringKind ||
		fd.MapValue().Message() != nil {
		return link{}, fmt.Errorf("%s can't be carried by map %s", t, fd.FullName())
	}
	s, err := c.scalar(t.Elem(), fd.MapValue())
	if err != nil {
		return link{}, err
	}
	return link{
		put: func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
			out := m.Mutable(fd).Map()
			for it := v.MapRange(); it.Next(); {
				p, err := s.to(it.Value(), protoreflect.Value{})
				if err != nil {
					return err
				}
				out.Set(protoreflect.ValueOfString(it.Key().String()).MapKey(), p)
			}
			return nil
		},
		get: func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) (err error) {
			v.Set(reflect.MakeMap(t))
			m.Get(fd).Map().Range(func(k protoreflect.MapKey, p protoreflect.Value) bool {
				e := reflect.New(t.Elem()).Elem()
				err = s.from(p, e)
				v.SetMapIndex(reflect.ValueOf(k.String()).Convert(t.Key()), e)
				return err == nil
			})
			return err
		},
	}, nil
}

// scalar returns how one value of type t is carried by one of a field.
func (c *Codec) scalar(t reflect.Type, fd protoreflect.FieldDescriptor) (scalar, error) {
	if s, ok := c.known(t, fd); ok {
		return s, nil
	}
	no := fmt.Errorf("%s can't be carried by field %s, a %s", t, fd.FullName(), fd.Kind())
	switch fd.Kind() {
	case protoreflect.MessageKind:
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
			return scalar{}, no
		}
		if _, err := c.layout(t, fd.Message()); err != nil {
			return scalar{}, err
		}
		return c.message(), nil
	case protoreflect.EnumKind:
		if t.Kind() == reflect.String {
			return enum(fd.Enum(), c.Lenient), nil
		}
	case protoreflect.StringKind:
		if t.Kind() == reflect.String {
			return text(), nil
		}
	case protoreflect.BoolKind:
		if t.Kind() == reflect.Bool {
			return flag(), nil
		}
	case protoreflect.DoubleKind:
		if t.Kind() == reflect.Float64 {
			return double(), nil
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		if t.Kind() == reflect.Int || t.Kind() == reflect.Int64 {
			return signed(fd.Kind() == protoreflect.Int32Kind), nil
		}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		switch t.Kind() {
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			return unsigned(fd.Kind() == protoreflect.Uint32Kind), nil
		}
	}
	return scalar{}, no
}

// message carries a struct as a message of its own.
func (c *Codec) message() scalar {
	return scalar{
		to: func(v reflect.Value, fresh protoreflect.Value) (protoreflect.Value, error) {
			return fresh, c.put(v, fresh.Message())
		},
		from: func(p protoreflect.Value, v reflect.Value) error { return c.get(p.Message(), v) },
	}
}
