package inventory

import (
	"bytes"
	"encoding/json"
	"strings"

	"heddle/internal/slice"
	"heddle/internal/spec"
)

// portGroup is what a port group says beside its policies.
type portGroup struct {
	spec.PortGroup
	// doc is the document for hosts, which need neither the number of ports nor the labels.
	doc []byte
}

// addGroup reads a port group that says something of its ports or of the hosts that may serve it. The others are the
// most, and are not decoded.
func (v *Inventory) addGroup(o slice.Object) error {
	if !bytes.Contains(o.Doc, []byte(`"labels"`)) && !bytes.Contains(o.Doc, []byte(`"binding"`)) {
		return nil
	}
	var g portGroup
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(o.Doc, &g.PortGroup); err != nil {
		return err
	}
	if err := json.Unmarshal(o.Doc, &fields); err != nil {
		return err
	}
	delete(fields, "labels")
	delete(fields, "ports")
	doc, err := json.Marshal(fields)
	g.doc = doc
	v.groups[o.Name] = g
	return err
}

// Group is what a port group SWITCH/GROUP says of its ports; that of one that there is not has ephemeral ones.
func (v *Inventory) Group(name string) spec.PortGroup { return v.groups[name].PortGroup }

// StaticGroups are the port groups with static ports, by SWITCH/GROUP.
func (v *Inventory) StaticGroups() map[string]spec.PortGroup {
	all := map[string]spec.PortGroup{}
	for name, g := range v.groups {
		if g.HasStaticPorts() {
			all[name] = g.PortGroup
		}
	}
	return all
}

// barred are the port groups of these switches that a host with these labels may not serve.
func (v *Inventory) barred(switches map[string]spec.HostSwitch, labels map[string]string) map[string]bool {
	all := map[string]bool{}
	for name, g := range v.groups {
		sw, _, _ := strings.Cut(name, "/")
		if _, has := switches[sw]; has && !g.Serves(labels) {
			all[name] = true
		}
	}
	return all
}

// Barred are the port groups of a host's switches that its labels do not let it serve.
func (v *Inventory) Barred(host string, joined map[string]string) map[string]bool {
	if len(v.groups) == 0 {
		return nil
	}
	return v.barred(v.Switches(host, joined), v.Labels(host, joined))
}

// handed is a port group as hosts get it.
func (v *Inventory) handed(o slice.Object) slice.Object {
	if g, ok := v.groups[o.Name]; ok {
		o.Doc = g.doc
	}
	return o
}
