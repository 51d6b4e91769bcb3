package spec

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// The level rule: a field of a policy with the tag level:"port" says what belongs to one port, such as its guest's
// addresses. It is set at ports alone, and a port group need not allow it (S9). Every other field is set at any level.

// PortOnly reports whether the policy field at a path of the configuration file is set at ports alone.
func PortOnly(path string) bool {
	found := false
	eachPortOnly(&Policy{}, func(at []string, _ reflect.Value) {
		found = found || strings.Join(at, ".") == path
	})
	return found
}

// portField is a field of a policy that is set at ports alone: its path in the configuration file, and in the type.
type portField struct {
	path  []string
	index []int
}

// portFields are found once: every port group of every plan is looked at for them.
var portFields = sync.OnceValue(func() []portField { return portFieldsOf(reflect.TypeFor[Policy](), portField{}) })

// portFieldsOf are those in t, the type of the policy or of a part of it.
func portFieldsOf(t reflect.Type, part portField) (list []portField) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		at := portField{append(slices.Clip(part.path), name), append(slices.Clip(part.index), i)}
		switch {
		case f.Tag.Get("level") == "port":
			list = append(list, at)
		case f.Type.Kind() == reflect.Struct:
			list = append(list, portFieldsOf(f.Type, at)...)
		}
	}
	return list
}

// eachPortOnly calls f with every field of a policy that is set at ports alone.
func eachPortOnly(p *Policy, f func(path []string, v reflect.Value)) {
	v := reflect.ValueOf(p).Elem()
	for _, own := range portFields() {
		f(own.path, v.FieldByIndex(own.index))
	}
}

// categoriesSet are the categories of which a port sets something that its port group has to allow.
func (p Policy) categoriesSet() map[string]bool {
	v := reflect.ValueOf(&p).Elem()
	eachPortOnly(&p, func(_ []string, own reflect.Value) { own.SetZero() })
	set := map[string]bool{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		set[name] = !v.Field(i).IsZero()
	}
	return set
}

// portsAlone reports to v fields that are set at another level than a port, and may not be.
func (l level) portsAlone(v *validator) {
	if l.kind == "port" {
		return
	}
	eachPortOnly(l.policy, func(path []string, value reflect.Value) {
		if value.IsZero() {
			return
		}
		a, text := l.at, ""
		for _, step := range path {
			a = a.field(step)
		}
		if list, is := value.Interface().(*[]string); is {
			text = shown(listText(*list))
		}
		v.fault(a, text, "%s belong to one port: list them at the ports of %s", path[len(path)-1], l.what())
	})
}
