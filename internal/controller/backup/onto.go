package backup

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/internal/spec"
)

// How says how a backup is brought in.
type How struct {
	// Replace puts what the backup has in the place of what has its name. Of a backup of everything, what it lacks
	// goes.
	Replace bool
	// Keep keeps identifiers and the numbers of static ports.
	Keep bool
}

// Onto is the definition that there is with the backup brought in. collisions say what is there already, and is
// another; then next says nothing.
func (f *File) Onto(now *spec.Definition, how How) (next *spec.Definition, collisions []string) {
	in := *f.Definition
	if !how.Keep {
		in.Ports = nil // by numbers that others have
	}
	switch {
	case how.Replace && f.Switch == "":
		return &in, nil
	case how.Replace:
		now = Without(now, f.Switch)
	}
	m := &merger{}
	out := &spec.Definition{}
	out.Switches = merge(m, "switch", now.Switches, in.Switches, func(s *spec.Switch) string { return s.Name }, nil)
	out.Templates = merge(m, "template", now.Templates, in.Templates,
		func(t *spec.HostTemplate) string { return t.Name },
		func(a, b spec.HostTemplate) (_ spec.HostTemplate, why []string) {
			a.Switches, a.HostPorts, why = entries(a.Labels, b.Labels, a.Switches, b.Switches, a.HostPorts, b.HostPorts)
			return a, why
		})
	out.Hosts = merge(m, "host", now.Hosts, in.Hosts, func(h *spec.HostEntry) string { return h.Name },
		func(a, b spec.HostEntry) (_ spec.HostEntry, why []string) {
			a.Switches, a.HostPorts, why = entries(a.Labels, b.Labels, a.Switches, b.Switches, a.HostPorts, b.HostPorts)
			return a, why
		})
	out.Ports = merge(m, "settings of static port", now.Ports, in.Ports,
		func(p *spec.PortSettings) string { return p.ID }, nil)
	return out, m.collisions
}

type merger struct{ collisions []string }

// merge is a list with what another one adds. What both have has to be equal, or such that both joins the two: it
// returns why not.
func merge[T any](m *merger, what string, now, in []T, name func(*T) string, both func(a, b T) (T, []string)) []T {
	out := slices.Clone(now)
	at := make(map[string]int, len(now))
	for i := range out {
		at[name(&out[i])] = i
	}
	for i := range in {
		k, there := at[name(&in[i])]
		text := fmt.Sprintf("%s %s is there, and is another", what, name(&in[i]))
		switch {
		case !there:
			out = append(out, in[i])
		case same(out[k], in[i]):
		case both == nil:
			m.collisions = append(m.collisions, text)
		default:
			one, why := both(out[k], in[i])
			if len(why) == 0 {
				out[k] = one
				continue
			}
			m.collisions = append(m.collisions, text+": "+strings.Join(why, "; "))
		}
	}
	return out
}

// entries joins what two templates, or entries of hosts, of one name say.
func entries(labels, others map[string]string, switches, inSwitches []spec.HostSwitch, ports, inPorts []spec.HostPort) (
	[]spec.HostSwitch, []spec.HostPort, []string) {
	m := &merger{}
	if !maps.Equal(labels, others) {
		m.collisions = append(m.collisions, "its labels differ")
	}
	switches = merge(m, "its entry for switch", switches, inSwitches,
		func(s *spec.HostSwitch) string { return s.Name }, nil)
	ports = merge(m, "its host port", ports, inPorts, func(p *spec.HostPort) string { return p.Name }, nil)
	return switches, ports, m.collisions
}

// same compares two objects by all their fields.
func same[T any](a, b T) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// Of is the part of a definition that is about one switch: the switch, and what templates, hosts and settings of static
// ports say of it. Entries that say nothing of it are left out.
func Of(d *spec.Definition, name string) *spec.Definition {
	return part(d, func(s string) bool { return s == name })
}

// Without is a definition without what Of takes of it. A template or a host of which nothing is left but its labels
// stays.
func Without(d *spec.Definition, name string) *spec.Definition {
	out := part(d, func(s string) bool { return s != name })
	out.Templates, out.Hosts = slices.Clone(d.Templates), slices.Clone(d.Hosts)
	other := func(s string) bool { return s != name }
	for i := range out.Templates {
		t := &out.Templates[i]
		t.Switches, t.HostPorts = about(t.Switches, t.HostPorts, other)
	}
	for i := range out.Hosts {
		h := &out.Hosts[i]
		h.Switches, h.HostPorts = about(h.Switches, h.HostPorts, other)
	}
	return out
}

func part(d *spec.Definition, is func(string) bool) *spec.Definition {
	out := &spec.Definition{}
	for _, s := range d.Switches {
		if is(s.Name) {
			out.Switches = append(out.Switches, s)
		}
	}
	for _, t := range d.Templates {
		if t.Switches, t.HostPorts = about(t.Switches, t.HostPorts, is); len(t.Switches)+len(t.HostPorts) > 0 {
			out.Templates = append(out.Templates, t)
		}
	}
	for _, h := range d.Hosts {
		if h.Switches, h.HostPorts = about(h.Switches, h.HostPorts, is); len(h.Switches)+len(h.HostPorts) > 0 {
			out.Hosts = append(out.Hosts, h)
		}
	}
	for _, p := range d.Ports {
		if is(p.Switch) {
			out.Ports = append(out.Ports, p)
		}
	}
	return out
}

// about are the entries that are about such switches.
func about(switches []spec.HostSwitch, ports []spec.HostPort, is func(string) bool) (s []spec.HostSwitch,
	p []spec.HostPort) {
	for _, one := range switches {
		if is(one.Name) {
			s = append(s, one)
		}
	}
	for _, one := range ports {
		if is(one.Switch) {
			p = append(p, one)
		}
	}
	return s, p
}

// Rename gives the switch of a backup of one switch another name.
func (f *File) Rename(to string) error {
	if f.Switch == "" {
		return fmt.Errorf("this is a backup of everything: only a backup of one switch takes another name")
	}
	if !spec.ValidName(to) {
		return fmt.Errorf("%s is no name of a switch", shown(to))
	}
	from := f.Switch
	f.Switch = to
	d := f.Definition
	for i := range d.Switches {
		d.Switches[i].Name = to
	}
	for i := range d.Templates {
		renameIn(d.Templates[i].Switches, d.Templates[i].HostPorts, to)
	}
	for i := range d.Hosts {
		renameIn(d.Hosts[i].Switches, d.Hosts[i].HostPorts, to)
	}
	for i := range d.Ports {
		d.Ports[i].Switch = to
	}
	for i := range f.StaticPorts {
		f.StaticPorts[i].Group = to + f.StaticPorts[i].Group[len(from):]
	}
	for _, list := range f.Addresses {
		for i := range list {
			list[i].Switch = to
		}
	}
	for kind, names := range f.Identifiers {
		renamed := map[string]string{}
		for name, id := range names {
			if name == from {
				name = to
			} else if len(name) > len(from) && name[:len(from)+1] == from+"/" {
				name = to + name[len(from):]
			}
			renamed[name] = id
		}
		f.Identifiers[kind] = renamed
	}
	return nil
}

func renameIn(switches []spec.HostSwitch, ports []spec.HostPort, to string) {
	for i := range switches {
		switches[i].Name = to
	}
	for i := range ports {
		ports[i].Switch = to
	}
}
