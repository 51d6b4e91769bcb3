package spec

import (
	"maps"
	"slices"
	"strconv"
)

// bindingRules checks what is about the kinds of ports.
type bindingRules struct{ *validator }

// binding checks what a port group says of the kind and number of its ports, and of the hosts that may serve it.
func (v bindingRules) binding(a at, g *PortGroup) {
	enum(v.validator, a, "binding", g.Binding, Ephemeral, Static, Elastic)
	if !v.fleet {
		const only = "only a definition for many hosts has this (heddle definition apply): leave it out here"
		if g.Ports != (PortCount{}) || v.written(a, "ports") {
			v.fault(a.field("ports"), "", only)
		}
		if len(g.Labels) > 0 || v.written(a, "labels") {
			v.fault(a.field("labels"), "", only)
		}
		return
	}
	v.labels(a, g.Labels)
	under := a.field("ports")
	if !g.HasStaticPorts() {
		if g.Ports != (PortCount{}) || v.written(a, "ports") {
			v.fault(under, "",
				"a port group with ephemeral ports has as many as guests connect: set binding to static "+
					"or elastic, or leave the number out")
		}
		return
	}
	number, _ := g.StaticPorts()
	v.portCount(under, "number", g.Ports.Number)
	v.portCount(under, "limit", g.Ports.Limit)
	switch {
	case g.Binding == Static && (g.Ports.Limit != 0 || v.written(under, "limit")):
		v.fault(under.field("limit"), strconv.Itoa(g.Ports.Limit),
			"a static port group does not grow: set its number, "+
				"or set binding to elastic")
	case g.Ports.Limit != 0 && g.Ports.Limit < number:
		v.fault(under.field("limit"), strconv.Itoa(g.Ports.Limit), "the limit is below %d, the number of ports that "+
			"the group begins with", number)
	}
}

func (v bindingRules) portCount(a at, field string, n int) {
	if n < 0 || n > MaxStaticPorts || n == 0 && v.written(a, field) {
		v.fault(a.field(field), strconv.Itoa(n), "a port group has 1–%d static ports", MaxStaticPorts)
	}
}

func (v bindingRules) labels(a at, labels map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		for _, word := range []string{k, labels[k]} {
			if msg := checkName(word); msg != "" {
				v.fault(a.field("labels").field(k), shown(word), "%s", msg)
			}
		}
	}
}
