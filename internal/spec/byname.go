package spec

import (
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// NamedDefinition is a Definition as other tools hold one: what has a name is found by it, in a mapping, and what has
// an order stays a list. ParseDefinition reads its JSON and YAML as it reads a Definition.
type NamedDefinition struct {
	// Switches by name, with their port groups by name.
	Switches map[string]NamedSwitch `json:"switches"`
	// Templates by name.
	Templates map[string]NamedTemplate `json:"templates"`
	// Hosts by name.
	Hosts map[string]NamedHost `json:"hosts"`
	// Ports are settings of static ports, by their numbers.
	Ports map[string]NumberedPort `json:"ports"`
}

// NamedSwitch is a Switch whose name is the key of a mapping.
type NamedSwitch struct {
	Switch
	Name string `json:"name,omitempty"` // stays empty; it hides the one of Switch, as the next field does
	// PortGroups by name.
	PortGroups map[string]NamedPortGroup `json:"portGroups"`
}

// NamedPortGroup is a PortGroup whose name is the key of a mapping.
type NamedPortGroup struct {
	PortGroup
	Name string `json:"name,omitempty"` // stays empty; it hides the one of PortGroup
}

// NamedTemplate is a HostTemplate whose name is the key of a mapping.
type NamedTemplate struct {
	HostTemplate
	Name string `json:"name,omitempty"` // stays empty; it hides the one of HostTemplate
}

// NamedHost is a HostEntry whose name is the key of a mapping.
type NamedHost struct {
	HostEntry
	Name string `json:"name,omitempty"` // stays empty; it hides the one of HostEntry
}

// NumberedPort are PortSettings whose number is the key of a mapping.
type NumberedPort struct {
	PortSettings
	ID string `json:"id,omitempty"` // stays empty; it hides the one of PortSettings
}

// ByName is the same definition with mappings by name.
func (d *Definition) ByName() *NamedDefinition {
	return &NamedDefinition{
		Switches: byName(d.Switches, func(s Switch) (string, NamedSwitch) {
			return s.Name, NamedSwitch{Switch: s, PortGroups: byName(s.PortGroups,
				func(g PortGroup) (string, NamedPortGroup) { return g.Name, NamedPortGroup{PortGroup: g} })}
		}),
		Templates: byName(d.Templates, func(t HostTemplate) (string, NamedTemplate) {
			return t.Name, NamedTemplate{HostTemplate: t}
		}),
		Hosts: byName(d.Hosts, func(h HostEntry) (string, NamedHost) { return h.Name, NamedHost{HostEntry: h} }),
		Ports: byName(d.Ports, func(p PortSettings) (string, NumberedPort) {
			return p.ID, NumberedPort{PortSettings: p}
		}),
	}
}

func byName[T, N any](list []T, of func(T) (string, N)) map[string]N {
	return maps.Collect(func(yield func(string, N) bool) {
		for o := range slices.Values(list) {
			if !yield(of(o)) {
				return
			}
		}
	})
}

// keyOf is the field by which objects of a type are found in a mapping, "" where they come in lists alone.
func (d *decoder) keyOf(t reflect.Type) string {
	if !d.named || t.Kind() != reflect.Struct {
		return ""
	}
	if first := d.fieldsOf(t).names[0]; first == "name" || first == "id" {
		return first
	}
	return ""
}

// byName decodes a mapping of objects into a list: each key is what the object's own field says elsewhere.
func (d *decoder) byName(n *yaml.Node, v reflect.Value, a at, field string) {
	index := d.fieldsOf(v.Type().Elem()).index[field]
	v.Set(reflect.MakeSlice(v.Type(), 0, min(len(n.Content)/2, 1024)))
	for i := 0; i+1 < len(n.Content) && d.values <= d.most; i += 2 {
		key, object := n.Content[i], n.Content[i+1]
		under := a.item(i/2, key.Value)
		v.Grow(1)
		v.SetLen(i/2 + 1)
		one := v.Index(i / 2)
		d.value(object, one, under)
		own := under.field(field)
		switch said := one.FieldByIndex(index); {
		case d.src.bad[own.key]:
		case said.String() != "" && said.String() != key.Value:
			d.fault(key, own, "the object says %s itself: leave its %s out", shown(said.String()), field)
		default:
			d.into[own.key] = position{key.Line, key.Column}
			d.scalar(key, said, own)
		}
	}
}
