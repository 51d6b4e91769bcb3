package vsphere

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"heddle/internal/spec"
)

// Merge adds what was imported to a definition, and returns what stands in the way, by name: switches, templates,
// labels and host ports that are there already and different. With replace it puts the imported ones in their
// place. A host keeps what it has besides.
func Merge(onto, imported *spec.Definition, replace bool) (collisions []string) {
	m := merging{replace: replace}
	onto.Switches = merge(&m, onto.Switches, imported.Switches, "switch", func(s *spec.Switch) string { return s.Name })
	onto.Templates = merge(&m, onto.Templates, imported.Templates, "template",
		func(t *spec.HostTemplate) string { return t.Name })
	onto.Hosts = slices.Clone(onto.Hosts)
	for _, h := range imported.Hosts {
		k := slices.IndexFunc(onto.Hosts, func(has spec.HostEntry) bool { return has.Name == h.Name })
		if k < 0 {
			onto.Hosts = append(onto.Hosts, h)
			continue
		}
		m.host(&onto.Hosts[k], &h)
	}
	return m.collisions
}

// merging is what stands in the way so far.
type merging struct {
	replace    bool
	collisions []string
}

func (m *merging) host(onto, h *spec.HostEntry) {
	labels := map[string]string{}
	maps.Copy(labels, onto.Labels)
	for _, label := range slices.Sorted(maps.Keys(h.Labels)) {
		if has, ok := labels[label]; ok && has != h.Labels[label] && !m.replace {
			m.collisions = append(m.collisions, "host "+h.Name+", label "+label)
			continue
		}
		labels[label] = h.Labels[label]
	}
	if len(labels) > 0 {
		onto.Labels = labels
	}
	onto.HostPorts = merge(m, onto.HostPorts, h.HostPorts, "host "+h.Name+", port",
		func(p *spec.HostPort) string { return p.Name })
}

func merge[T any](m *merging, onto, imported []T, kind string, name func(*T) string) []T {
	at := map[string]int{}
	for i := range onto {
		at[name(&onto[i])] = i
	}
	onto = slices.Clone(onto)
	for i := range imported {
		k, there := at[name(&imported[i])]
		switch {
		case !there:
			onto = append(onto, imported[i])
		case m.replace:
			onto[k] = imported[i]
		case !same(&onto[k], &imported[i]):
			m.collisions = append(m.collisions, kind+" "+name(&imported[i]))
		}
	}
	return onto
}

// same reports whether two objects are written alike.
func same(a, b any) bool {
	one, err := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return err == nil && errOther == nil && bytes.Equal(one, other)
}
