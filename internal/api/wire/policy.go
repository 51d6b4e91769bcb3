package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/spec"
)

// settings carries what a port sets for itself as the fields that are set, by their paths in the configuration file. A
// new field of the policy needs no change of the schema; an agent that does not know it refuses it.
func settings() link {
	return link{
		put: func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
			list := m.Mutable(fd).List()
			return putSettings(v, "", func(path string, value *agentv1.PolicyValue) {
				list.Append(protoreflect.ValueOfMessage(
					(&agentv1.PolicySetting{Policy: path, Value: value}).ProtoReflect()))
			})
		},
		get: func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
			p := spec.Policy{}
			list := m.Get(fd).List()
			for i := range list.Len() {
				s := list.Get(i).Message().Interface().(*agentv1.PolicySetting)
				if err := getSetting(reflect.ValueOf(&p).Elem(), strings.Split(s.GetPolicy(), "."),
					s.GetValue()); err != nil {
					return fmt.Errorf("%s: %w", s.GetPolicy(), err)
				}
			}
			v.Set(reflect.ValueOf(p))
			return nil
		},
	}
}

// putSettings emits the fields of a struct of the configuration that are set.
func putSettings(v reflect.Value, prefix string, emit func(string, *agentv1.PolicyValue)) error {
	for i := range v.NumField() {
		name, _ := fieldName(v.Type().Field(i))
		f, path := v.Field(i), prefix+name
		if f.IsZero() {
			continue
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
			if f.Kind() == reflect.Struct && f.IsZero() {
				return fmt.Errorf("%s: nothing of it is set", path)
			}
		}
		if f.Kind() == reflect.Struct {
			if err := putSettings(f, path+".", emit); err != nil {
				return err
			}
			continue
		}
		value, err := putValue(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		emit(path, value)
	}
	return nil
}

func putValue(v reflect.Value) (*agentv1.PolicyValue, error) {
	switch {
	case v.Kind() == reflect.Bool:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Flag{Flag: v.Bool()}}, nil
	case v.Kind() == reflect.Int:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Number{Number: v.Int()}}, nil
	case v.Kind() == reflect.String:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Word{Word: strings.ToValidUTF8(v.String(), "\uFFFD")}},
			nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		list := &agentv1.WordList{}
		for i := range v.Len() {
			list.Words = append(list.Words, strings.ToValidUTF8(v.Index(i).String(), "\uFFFD"))
		}
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Words{Words: list}}, nil
	}
	return nil, fmt.Errorf("%s can't be carried", v.Type())
}

// getSetting sets the field at a path of a struct of the configuration.
func getSetting(v reflect.Value, path []string, value *agentv1.PolicyValue) error {
	i := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
		name, _ := fieldName(f)
		return name == path[0]
	})
	if i < 0 {
		return fmt.Errorf("this agent knows no such policy: it is older than the command; restart it with the same " +
			"program")
	}
	f := v.Field(i)
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		}
		f = f.Elem()
	}
	if f.Kind() == reflect.Struct && len(path) > 1 {
		return getSetting(f, path[1:], value)
	}
	if len(path) > 1 {
		return fmt.Errorf("%s has nothing in it", path[0])
	}
	return getValue(f, value)
}

func getValue(v reflect.Value, value *agentv1.PolicyValue) error {
	switch k := value.GetKind().(type) {
	case *agentv1.PolicyValue_Flag:
		if v.Kind() == reflect.Bool {
			v.SetBool(k.Flag)
			return nil
		}
	case *agentv1.PolicyValue_Number:
		if v.Kind() == reflect.Int {
			v.SetInt(k.Number)
			return nil
		}
	case *agentv1.PolicyValue_Word:
		if v.Kind() == reflect.String {
			v.SetString(k.Word)
			return nil
		}
	case *agentv1.PolicyValue_Words:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
			list := reflect.MakeSlice(v.Type(), 0, len(k.Words.GetWords()))
			for _, w := range k.Words.GetWords() {
				list = reflect.Append(list, reflect.ValueOf(w).Convert(v.Type().Elem()))
			}
			v.Set(list)
			return nil
		}
	}
	return fmt.Errorf("its value is of another type")
}
