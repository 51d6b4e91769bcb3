package spec

import (
	"strings"
	"testing"
)

const goodDefinition = `
switches:
- name: dvs
  uplinks: [{name: uplink1}, {name: uplink2}]
  portGroups:
  - {name: web, vlan: {access: 10}, teaming: {active: [uplink1], standby: [uplink2]}}
templates:
- name: racked
  labels: {rack: a}
  switches:
  - {name: dvs, uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]}
hosts:
- name: esx1
  labels: {rack: a, "10": "20"}
- name: esx2
  switches:
  - {name: dvs, uplinks: [{name: uplink2, device: ens3}]}
`

func TestDefinition_HasDevicesByHostAndTemplate(t *testing.T) {
	d, err := ParseDefinition("fleet.yaml", []byte(goodDefinition))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Switches) != 1 || d.Hosts[0].Labels["10"] != "20" || d.Hosts[1].Switches[0].Uplinks[0].Device != "ens3" {
		t.Errorf("definition %+v", d)
	}
	if tpl := d.Templates[0]; !tpl.Fits(d.Hosts[0].Labels) || tpl.Fits(d.Hosts[1].Labels) ||
		tpl.Fits(map[string]string{"rack": "b"}) || !(&HostTemplate{}).Fits(nil) {
		t.Errorf("template %+v fits others than it says", tpl)
	}
	if err := d.Validate(); err != nil {
		t.Errorf("the same in memory: %v", err)
	}
}

func TestDefinition_FaultsHaveLines(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"device in a switch": {"{name: uplink1}, {", "{name: uplink1, device: eno1}, {",
			"fleet.yaml:4:37: switches[dvs].uplinks[uplink1].device"},
		"standard switch": {"- name: dvs\n", "- name: dvs\n  kind: standard\n", "a standard switch is one host's own"},
		"unknown switch": {"  - {name: dvs, uplinks: [{name: uplink2", "  - {name: dvz, uplinks: [{name: uplink2",
			"no such switch"},
		"unknown uplink":    {"[{name: uplink2, device: ens3}]", "[{name: uplink3, device: ens3}]", "no such uplink"},
		"device twice":      {"device: eno2", "device: eno1", "another uplink here"},
		"no device":         {"device: ens3", "device: \"\"", "hosts[esx2].switches[dvs].uplinks[uplink2].device"},
		"host twice":        {"name: esx2", "name: esx1", "another host has this name"},
		"labels no words":   {"labels: {rack: a}\n", "labels: [rack]\n", "must be a mapping of words"},
		"label twice":       {"{rack: a}", "{rack: a, rack: b}", "given twice"},
		"odd label":         {"{rack: a}", "{rack: \"\\t\"}", "templates[racked].labels.rack"},
		"ports of a file":   {"hosts:", "ports: [{name: x}]\nhosts:", "ports[0].id"},
		"team of no uplink": {"active: [uplink1]", "active: [uplink9]", "uplink9"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(goodDefinition, c.from, c.to, 1)
			if text == goodDefinition {
				t.Fatal("the case changes nothing")
			}
			_, err := ParseDefinition("fleet.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A definition that is too large is refused with how large it is, how large it may be, and what to do.
func TestDefinition_TooLargeIsSaidWithFigures(t *testing.T) {
	groups := strings.Repeat("  - {name: a, vlan: {access: 1}}\n", 600_000)
	for name, c := range map[string]struct{ text, want string }{
		"by bytes": {"# " + strings.Repeat("x", 40<<20), "the definition has 40.0 MiB, and a cluster's has at " +
			"most 32 MiB"},
		"as much as is read": {"# " + strings.Repeat("x", maxDefinition-1), "the definition has more than " +
			"32 MiB, and a cluster's has at most that"},
		"by values": {"switches:\n- name: dvs\n  portGroups:\n" + groups, "values, and a cluster's has at most " +
			"2000000, which are some 130000 port groups"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDefinition("fleet.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(),
				"several clusters") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	fits := strings.Repeat("  - {name: a, vlan: {access: 1}}\n", 130_000)
	if why := TooLargeDefinition([]byte("switches:\n- name: dvs\n  portGroups:\n" + fits)); why != "" {
		t.Errorf("130,000 port groups: %s", why)
	}
}
