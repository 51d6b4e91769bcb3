package spec

import (
	"reflect"
	"slices"
	"strings"
)

// The level rule: a field of a policy with the tag level:"port" says what belongs to one port, such as its guest's
// addresses. It is set at ports alone, and a port group need not allow it (S9). Every other field is set at any level.

// PortOnly reports whether the policy field at a path of the configuration file is set at ports alone.
func PortOnly(path string) bool {
	found := false
	eachPortOnly(reflect.ValueOf(&Policy{}).Elem(), nil, func(at []string, _ reflect.Value) {
		found = found || strings.Join(at, ".") == path
	})
	return found
}

// eachPortOnly calls f with every field in p, the policy or a part of it at path, that is set at ports alone.
func eachPortOnly(p reflect.Value, path []string, f func(path []string, v reflect.Value)) {
	for i := range p.NumField() {
		t := p.Type().Field(i)
		name, _, _ := strings.Cut(t.Tag.Get("yaml"), ",")
		at := append(slices.Clip(path), name)
		switch {
		case t.Tag.Get("level") == "port":
			f(at, p.Field(i))
		case p.Field(i).Kind() == reflect.Struct:
			eachPortOnly(p.Field(i), at, f)
		}
	}
}

// categoriesSet are the categories of which a port sets something that its port group has to allow.
func (p Policy) categoriesSet() map[string]bool {
	v := reflect.ValueOf(&p).Elem()
	eachPortOnly(v, nil, func(_ []string, own reflect.Value) { own.SetZero() })
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
	eachPortOnly(reflect.ValueOf(l.policy).Elem(), nil, func(path []string, value reflect.Value) {
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
