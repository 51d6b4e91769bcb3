package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"heddle/internal/slice"
	"heddle/internal/spec"
)

// Kinds of objects that only controllers have, beside those of a slice.
const (
	// Template is a spec.HostTemplate.
	Template slice.Kind = "template"
	// Host is a spec.HostEntry.
	Host slice.Kind = "hostEntry"
)

// Kinds are those that make the definition.
func Kinds() []slice.Kind {
	return []slice.Kind{slice.Switch, slice.PortGroup, slice.StaticPort, Template, Host}
}

// Inventory is one version of the definition.
type Inventory struct {
	objects   *slice.Set
	templates []spec.HostTemplate // by name
	hosts     map[string]spec.HostEntry
	groups    map[string]portGroup // SWITCH/GROUP: those that say something of binding, ports or labels

	settings map[string]slice.Object
	// hostPorts: some host or template has host ports.
	hostPorts bool

	mu    sync.Mutex
	ports map[string][]spec.HostPort // of hosts without an entry of their own, by their labels
	parts map[string]*slice.Set      // what hosts with the same switches and devices are handed, by these
	plain map[string]*slice.Set      // the same for hosts without an entry of their own, by their labels
}

// New reads a definition from its objects. Objects of other kinds are kept as they are.
func New(objects *slice.Set) (*Inventory, error) {
	v := &Inventory{objects: objects, hosts: map[string]spec.HostEntry{}, groups: map[string]portGroup{},
		settings: map[string]slice.Object{}, ports: map[string][]spec.HostPort{},
		parts: map[string]*slice.Set{},
		plain: map[string]*slice.Set{}}
	for o := range objects.All() {
		var err error
		switch o.Kind {
		case Template:
			var t spec.HostTemplate
			err = json.Unmarshal(o.Doc, &t)
			v.templates = append(v.templates, t)
			v.hostPorts = v.hostPorts || len(t.HostPorts) > 0
		case Host:
			var h spec.HostEntry
			err = json.Unmarshal(o.Doc, &h)
			v.hosts[h.Name] = h
			v.hostPorts = v.hostPorts || len(h.HostPorts) > 0
		case slice.StaticPort:
			v.settings[o.Name] = o
		case slice.PortGroup:
			err = v.addGroup(o)
		}
		if err != nil {
			return nil, fmt.Errorf("the definition's %s is damaged: %w", o.Key, err)
		}
	}
	return v, nil
}

// Objects are those of the inventory. The set must not be changed.
func (v *Inventory) Objects() *slice.Set { return v.objects }

// Of splits a definition into objects.
func Of(d *spec.Definition) (*slice.Set, error) {
	set := &slice.Set{}
	var failed error
	put := func(kind slice.Kind, name string, content any) {
		doc, err := json.Marshal(content)
		if err != nil {
			failed = err
			return
		}
		set.Put(slice.Object{Key: slice.Key{Kind: kind, Name: name}, Doc: doc})
	}
	for _, sw := range d.Switches {
		groups := sw.PortGroups
		sw.PortGroups = nil
		put(slice.Switch, sw.Name, sw)
		for _, g := range groups {
			put(slice.PortGroup, sw.Name+"/"+g.Name, g)
		}
	}
	for _, t := range d.Templates {
		put(Template, t.Name, t)
	}
	for _, h := range d.Hosts {
		put(Host, h.Name, h)
	}
	for _, p := range d.Ports {
		put(slice.StaticPort, p.ID, p)
	}
	return set, failed
}

// DefinitionOf is what objects define, as people write it.
func DefinitionOf(objects *slice.Set) (*spec.Definition, error) {
	v, err := New(objects)
	if err != nil {
		return nil, err
	}
	return v.Definition()
}

// Definition is the inventory as people write it, sorted by names.
func (v *Inventory) Definition() (*spec.Definition, error) {
	d := &spec.Definition{Templates: v.templates}
	at := map[string]int{}
	var groups []slice.Object
	for o := range v.objects.All() {
		switch o.Kind {
		case slice.Switch:
			var sw spec.Switch
			if err := json.Unmarshal(o.Doc, &sw); err != nil {
				return nil, fmt.Errorf("the definition's %s is damaged: %w", o.Key, err)
			}
			at[sw.Name] = len(d.Switches)
			d.Switches = append(d.Switches, sw)
		case slice.PortGroup:
			groups = append(groups, o)
		case slice.StaticPort:
			var p spec.PortSettings
			if err := json.Unmarshal(o.Doc, &p); err != nil {
				return nil, fmt.Errorf("the definition's %s is damaged: %w", o.Key, err)
			}
			d.Ports = append(d.Ports, p)
		}
	}
	slices.SortFunc(d.Ports, func(a, b spec.PortSettings) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	for _, o := range groups {
		var g spec.PortGroup
		if err := json.Unmarshal(o.Doc, &g); err != nil {
			return nil, fmt.Errorf("the definition's %s is damaged: %w", o.Key, err)
		}
		name, _, _ := strings.Cut(o.Name, "/")
		if i, ok := at[name]; ok {
			d.Switches[i].PortGroups = append(d.Switches[i].PortGroups, g)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.hosts)) {
		d.Hosts = append(d.Hosts, v.hosts[name])
	}
	return d, nil
}

// Labels are those that the definition gives a host, over those with which it joined.
func (v *Inventory) Labels(host string, joined map[string]string) map[string]string {
	labels := maps.Clone(joined)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, v.hosts[host].Labels)
	return labels
}

// Switches are those that a host has, by name. Of templates that give it the same switch, the last by name counts; the
// host's own entry stands above them.
func (v *Inventory) Switches(host string, joined map[string]string) map[string]spec.HostSwitch {
	all := map[string]spec.HostSwitch{}
	labels := v.Labels(host, joined)
	for i := range v.templates {
		if t := &v.templates[i]; t.Fits(labels) {
			for _, s := range t.Switches {
				all[s.Name] = s
			}
		}
	}
	for _, s := range v.hosts[host].Switches {
		all[s.Name] = s
	}
	return all
}

// Slice is what a host is handed: its switches with its devices, and every port group of them that its labels let it
// serve, so that a VM can start on it while no controller is there. Hosts with the same switches and devices share one
// set, which must not be changed.
func (v *Inventory) Slice(host string, joined map[string]string) (*slice.Set, error) {
	if _, own := v.hosts[host]; own {
		return v.sliceOf(host, joined)
	}
	// A thousand equal hosts are one computation.
	key := fingerprint(joined)
	v.mu.Lock()
	set, ok := v.plain[key]
	v.mu.Unlock()
	if ok {
		return set, nil
	}
	set, err := v.sliceOf(host, joined)
	if err == nil {
		v.mu.Lock()
		v.plain[key] = set
		v.mu.Unlock()
	}
	return set, err
}

// fingerprint tells sets of labels apart.
func fingerprint(labels map[string]string) string {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b = strconv.AppendQuote(strconv.AppendQuote(b, k), labels[k])
	}
	return string(b)
}

func (v *Inventory) sliceOf(host string, joined map[string]string) (*slice.Set, error) {
	switches := v.Switches(host, joined)
	barred := v.barred(switches, v.Labels(host, joined))
	key, err := json.Marshal([]any{switches, barred})
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if set, ok := v.parts[string(key)]; ok {
		return set, nil
	}
	set := &slice.Set{}
	for o := range v.objects.All() {
		sw, _, _ := strings.Cut(o.Name, "/")
		entry, has := switches[sw]
		switch {
		case o.Kind == slice.Switch && has:
			doc, err := withDevices(o.Doc, entry)
			if err != nil {
				return nil, fmt.Errorf("the definition's %s is damaged: %w", o.Key, err)
			}
			set.Put(slice.Object{Key: o.Key, Doc: doc})
		case o.Kind == slice.PortGroup && has && !barred[o.Name]:
			set.Put(v.handed(o))
		}
	}
	v.parts[string(key)] = set
	return set, nil
}

// withDevices is a switch's document with the devices that its uplinks have on a host. Fields that this program does
// not know stay.
func withDevices(doc []byte, entry spec.HostSwitch) ([]byte, error) {
	var fields map[string]json.RawMessage
	var uplinks []map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		return nil, err
	}
	if raw, ok := fields["uplinks"]; ok {
		if err := json.Unmarshal(raw, &uplinks); err != nil {
			return nil, err
		}
	}
	for _, u := range uplinks {
		var name string
		if err := json.Unmarshal(u["name"], &name); err != nil {
			return nil, err
		}
		for _, e := range entry.Uplinks {
			if e.Name == name {
				device, err := json.Marshal(e.Device)
				if err != nil {
					return nil, err
				}
				u["device"] = device
			}
		}
	}
	if len(uplinks) > 0 {
		raw, err := json.Marshal(uplinks)
		if err != nil {
			return nil, err
		}
		fields["uplinks"] = raw
	}
	return json.Marshal(fields)
}
