package wire

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	optionsv1 "heddle/api/heddle/options/v1"
)

// text carries a string. Invalid UTF-8 in it, as in a file's name or a neighbour's texts, is replaced.
func text() scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			return protoreflect.ValueOfString(valid(v.String())), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error { v.SetString(p.String()); return nil },
	}
}

// valid returns a text with invalid UTF-8 replaced.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func validAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = valid(s)
	}
	return out
}

func flag() scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			return protoreflect.ValueOfBool(v.Bool()), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error { v.SetBool(p.Bool()); return nil },
	}
}

func double() scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			return protoreflect.ValueOfFloat64(v.Float()), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error { v.SetFloat(p.Float()); return nil },
	}
}

func signed(short bool) scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			n := v.Int()
			switch {
			case !short:
				return protoreflect.ValueOfInt64(n), nil
			case n < math.MinInt32 || n > math.MaxInt32:
				return protoreflect.Value{}, fmt.Errorf("%d: it does not fit into the contract", n)
			}
			return protoreflect.ValueOfInt32(int32(n)), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error { v.SetInt(p.Int()); return nil },
	}
}

func unsigned(short bool) scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			n := v.Uint()
			switch {
			case !short:
				return protoreflect.ValueOfUint64(n), nil
			case n > math.MaxUint32:
				return protoreflect.Value{}, fmt.Errorf("%d: it does not fit into the contract", n)
			}
			return protoreflect.ValueOfUint32(uint32(n)), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error {
			if v.OverflowUint(p.Uint()) {
				return fmt.Errorf("%d: it is at most %d here", p.Uint(), uint64(1)<<v.Type().Bits()-1)
			}
			v.SetUint(p.Uint())
			return nil
		},
	}
}

// enum carries a word as the value of an enum with that text. An unknown value, which another version has added, is
// read as "unknown-7", and can be written in that form, too. lenient leaves out a word that the enum lacks.
func enum(e protoreflect.EnumDescriptor, lenient bool) scalar {
	numbers, words := map[string]protoreflect.EnumNumber{}, map[protoreflect.EnumNumber]string{}
	var list []string
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		if w := Text(v); w != "" {
			numbers[w], words[v.Number()] = v.Number(), w
			list = append(list, w)
		}
	}
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			n, ok := numbers[v.String()]
			if !ok {
				n, ok = newer(v.String())
			}
			if !ok && !lenient {
				return protoreflect.Value{}, fmt.Errorf("%q is none of %s", v.String(), strings.Join(list, ", "))
			}
			return protoreflect.ValueOfEnum(n), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error {
			w, ok := words[p.Enum()]
			if !ok {
				w = unknownWord + strconv.Itoa(int(p.Enum()))
			}
			v.SetString(w)
			return nil
		},
	}
}

// unknownWord is the beginning of the text of an unknown value; its number follows.
const unknownWord = "unknown-"

// newer returns the number of an unknown value.
func newer(word string) (protoreflect.EnumNumber, bool) {
	digits, ok := strings.CutPrefix(word, unknownWord)
	n, err := strconv.ParseInt(digits, 10, 32)
	return protoreflect.EnumNumber(n), ok && err == nil
}

// Text returns the text of an enum's value, for people and in JSON.
func Text(v protoreflect.EnumValueDescriptor) string {
	s, _ := proto.GetExtension(v.Options(), optionsv1.E_Text).(string)
	return s
}
