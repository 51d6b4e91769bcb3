package rollout

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// Undo is what makes a definition with a change the one before: what hosts that are not reached yet are handed has it
// applied.
func Undo(before, after *slice.Set) slice.Change { return slice.Between(after, before) }

// SwitchesOf are the switches that a change concerns, sorted: while a rollout of them is open they are changed by
// nothing else, so that each switch of each host is as one revision describes it. What may concern any switch, such as
// another label of a host, concerns All.
func SwitchesOf(before, after *slice.Set) []string {
	names := map[string]bool{}
	c := slice.Between(before, after)
	keys := slices.Clone(c.Removed)
	for _, o := range c.Put {
		keys = append(keys, o.Key)
	}
	for _, k := range keys {
		was, _ := before.Get(k)
		now, _ := after.Get(k)
		concerned(names, k, was.Doc, now.Doc)
	}
	return slices.Sorted(maps.Keys(names))
}

// concerned adds the switches of one object. was and now are its documents, nil for none.
func concerned(names map[string]bool, k slice.Key, was, now []byte) {
	switch k.Kind {
	case slice.Switch:
		names[k.Name] = true
	case slice.PortGroup:
		sw, _, _ := strings.Cut(k.Name, "/")
		names[sw] = true
	case slice.StaticPort:
		for _, doc := range [][]byte{was, now} {
			var p struct{ Switch string }
			if doc != nil && json.Unmarshal(doc, &p) == nil {
				names[p.Switch] = true
			}
		}
	case inventory.Template, inventory.Host:
		concernedHosts(names, k, was, now)
	default:
		names[All] = true
	}
}

// onHosts is what a template or a host's own entry says.
type onHosts struct {
	Labels    map[string]string
	Switches  []spec.HostSwitch
	HostPorts []spec.HostPort
}

// concernedHosts adds the switches of a template, or of a host's own entry.
func concernedHosts(names map[string]bool, k slice.Key, was, now []byte) {
	var a, b onHosts
	for _, d := range []struct {
		doc []byte
		to  *onHosts
	}{{was, &a}, {now, &b}} {
		if d.doc != nil && json.Unmarshal(d.doc, d.to) != nil {
			names[All] = true
			return
		}
	}
	same := maps.Equal(a.Labels, b.Labels)
	if !same && k.Kind == inventory.Host { // other templates and port groups may fit the host
		names[All] = true
		return
	}
	mine, theirs := a.bySwitch(), b.bySwitch()
	for _, sw := range slices.Concat(slices.Collect(maps.Keys(mine)), slices.Collect(maps.Keys(theirs))) {
		if !same || mine[sw] != theirs[sw] {
			names[sw] = true
		}
	}
}

// bySwitch is what it says of each switch, as text.
func (o *onHosts) bySwitch() map[string]string {
	all := map[string]string{}
	for _, s := range o.Switches {
		doc, err := json.Marshal(s)
		if err != nil {
			panic(err) // plain data
		}
		all[s.Name] += string(doc)
	}
	for _, p := range o.HostPorts {
		doc, err := json.Marshal(p)
		if err != nil {
			panic(err) // plain data
		}
		all[p.Switch] += string(doc)
	}
	return all
}
