package spec

import (
	"slices"
	"strings"
	"testing"
)

const joinOwn = `
switches:
- name: lan
  kind: standard
  uplinks: [{name: uplink1, device: eno1}]
  portGroups: [{name: office}]
ports:
- {name: vm, switch: lan, portGroup: office, device: tap0}
`

func TestJoin_OwnershipIsPerSwitch(t *testing.T) {
	own := parsed(t, joinOwn)
	given := parsed(t, `
switches:
- name: dvs
  uplinks: [{name: uplink1, device: eno2}]
  portGroups: [{name: web, vlan: {access: 10}}]
ports:
- {name: vmk0, switch: dvs, portGroup: web, role: host}
`)
	joined, faults := Join(own, given)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if len(joined.Switches) != 2 || len(joined.Ports) != 2 || len(own.Switches) != 1 || len(given.Ports) != 1 {
		t.Errorf("joined %+v", joined)
	}
	if _, faults := WithPorts(joined, []Port{{Name: "x", Switch: "dvs", PortGroup: "web"},
		{Name: "y", Switch: "lan", PortGroup: "office"}}); len(faults) > 0 {
		t.Errorf("ports at both: %v", faults)
	}
	if same, faults := Join(own, nil); same != own || faults != nil {
		t.Errorf("with nothing given: %v", faults)
	}
}

func TestJoin_WhatBothClaimIsAFault(t *testing.T) {
	for name, c := range map[string]struct{ given, path, says string }{
		"device": {"switches: [{name: dvs, uplinks: [{name: u, device: eno1}]}]", "switches[dvs].uplinks[u].device",
			"eno1"},
		"switch": {"switches: [{name: lan}]", "switches[lan].name", "lan"},
		"port": {"switches: [{name: dvs, portGroups: [{name: web}]}]\n" +
			"ports: [{name: vm, switch: dvs, portGroup: web}]", "ports[vm].name", "vm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Join(parsed(t, joinOwn), parsed(t, c.given))
			if !slices.ContainsFunc(faults, func(f Fault) bool {
				return f.Path == c.path && f.Line == 0 && strings.Contains(f.Error(), c.says)
			}) {
				t.Errorf("faults %v, want one at %s with %q", faults, c.path, c.says)
			}
		})
	}
}

func parsed(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
