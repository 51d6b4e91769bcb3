package fleet

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/spec"
)

// effective is a field of a port's effective policy, as its host shows it.
func effective(p api.Port, field string) string {
	for _, r := range p.Effective {
		if r.Policy == field {
			return fmt.Sprintf("%v at %s", r.Value, r.From)
		}
	}
	return ""
}

// What the definition sets for one static port follows the port: to the VM that it is bound to, on whatever host that
// runs, from its first frame on.
func TestS9_WhatTheDefinitionSetsForAPortFollowsIt(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	text := strings.Replace(portsText, "{name: fixed,", "{name: fixed, overrides: {security: true},", 1)
	f.controller.Define(text)
	id := f.mustStartVM(0, 3, "p-a", "fixed").PortID
	other := f.mustStartVM(1, 4, "p-b", "fixed")

	settings := fmt.Sprintf("%sports:\n- {id: %q, switch: dvs, portGroup: fixed, name: backup, description: of the "+
		"night, "+
		"security: {promiscuous: accept}}\n", text, id)
	if out := f.controller.Define(settings); len(out.Hosts) != 1 || out.Hosts[0] != "esx0" || len(out.Waiting) > 0 {
		t.Errorf("the definition concerns %q, not active on %v", out.Hosts, out.Waiting)
	}
	p := f.port(0, "p-a")
	if got := effective(p, "security.promiscuous"); !strings.HasPrefix(got, "accept at port") || p.Label != "backup" ||
		p.Description != "of the night" {
		t.Errorf("promiscuous is %s; label %q, description %q", got, p.Label, p.Description)
	}
	if got := effective(f.port(1, "p-b"), "security.promiscuous"); strings.HasPrefix(got, "accept") {
		t.Errorf("on another port promiscuous is %s", got)
	}
	statics, err := f.controller.StaticPorts(t.Context(), api.StaticPortQuery{PortGroup: "fixed"})
	if err != nil {
		t.Fatal(err)
	}
	list := statics.Ports
	if list[0].Port != id || list[0].Label != "backup" ||
		!strings.Contains(list[0].Settings, "promiscuous") ||
		list[1].Label != "" {
		t.Errorf("the controller lists %+v", list)
	}

	// Off and on again, and on another host: from the start on, with the same number.
	f.hosts[0].must("port", "disconnect", "p-a")
	for _, n := range []int{0, 1} {
		if err := f.startVM(n, 3, "p-a", "fixed"); err != nil {
			t.Fatal(err)
		}
		p := f.port(n, "p-a")
		if got := effective(p, "security.promiscuous"); !strings.HasPrefix(got, "accept at port") || p.PortID != id {
			t.Errorf("on host %d port %s has promiscuous %s", n, p.PortID, got)
		}
		f.hosts[n].Up("p-a")
		f.hosts[n].must("port", "disconnect", "p-a")
	}

	for what, c := range map[string]struct{ from, to, want string }{
		"a number that there is not": {fmt.Sprintf("id: %q", id), fmt.Sprintf("id: %q", id+"1"),
			"there is no static port " + id + "1; it has " + list[0].Port + ", " + list[1].Port +
				" (heddle port static list)"},
		"another port group": {"portGroup: fixed, name", "portGroup: grows, name", "static port " + id +
			" belongs to port group dvs/fixed, not to dvs/grows"},
	} {
		wrong := strings.Replace(settings, c.from, c.to, 1)
		wrong = strings.Replace(wrong, "{name: grows,", "{name: grows, overrides: {security: true},", 1)
		_, err := f.controller.Defines(api.Define{File: "fleet.yaml", Content: wrong})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}

	f.controller.Define(text)
	if err := f.startVM(1, 3, "p-a", "fixed"); err != nil {
		t.Fatal(err)
	}
	if got := effective(f.port(1, "p-a"), "security.promiscuous"); !strings.HasPrefix(got, string(spec.Reject)) {
		t.Errorf("without the settings promiscuous is %s", got)
	}
	if p := f.port(1, "p-b"); p.PortID != other.PortID {
		t.Errorf("the other port is %s, was %s", p.PortID, other.PortID)
	}
}
