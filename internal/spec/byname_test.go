package spec

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec/yamltext"
)

// namedText is a definition with its objects by name, as "heddle export" writes it.
func namedText(t *testing.T, d *Definition) []byte {
	t.Helper()
	b, err := json.Marshal(d.ByName())
	if err == nil {
		b, err = yamltext.FromJSON(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sorted sorts what the form by name sorts.
func sorted(d *Definition) *Definition {
	slices.SortFunc(d.Switches, func(a, b Switch) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range d.Switches {
		slices.SortFunc(s.PortGroups, func(a, b PortGroup) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(d.Templates, func(a, b HostTemplate) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Hosts, func(a, b HostEntry) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Ports, func(a, b PortSettings) int { return strings.Compare(a.ID, b.ID) })
	return d
}

// Every field that a definition can have is there in the form by name as well, and is read back as it was.
func TestByName_KeepsEveryField(t *testing.T) {
	full := &Definition{}
	texts := 0
	filled(reflect.ValueOf(full).Elem(), 2, &texts)
	text := namedText(t, full)
	d := newDecoder("")
	d.named = true
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	back := &Definition{src: d.src}
	d.document(&doc, back)
	if err := d.found.err(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, err := FormatDefinition(sorted(full))
	if err != nil {
		t.Fatal(err)
	}
	got, err := FormatDefinition(sorted(back))
	if err != nil {
		t.Fatal(err)
	}
	wants, lines := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i, line := range wants {
		if i >= len(lines) || lines[i] != line {
			t.Fatalf("line %d is %q, want %q", i+1, lines[min(i, len(lines)-1)], line)
		}
	}
	if n := len(full.Switches) + len(full.Templates) + len(full.Hosts) + len(full.Ports); n != 8 {
		t.Errorf("%d objects were filled: this test shows less than it says", n)
	}
}

const namedDefinition = `switches:
  dvs:
    uplinks: [{name: uplink1}, {name: uplink2}]
    portGroups:
      web: {vlan: {access: 10}, teaming: {active: [uplink1]}}
      db:
        binding: static
templates:
  racked:
    labels: {rack: a}
    switches:
      dvs: {uplinks: {uplink1: {device: eno1}}}
hosts: {esx1: {labels: {rack: a}}, esx2: }
ports:
  "1": {switch: dvs, portGroup: db, name: backup}
`

func TestParseDefinition_TakesMappingsByName(t *testing.T) {
	d, err := ParseDefinition("fleet.yaml", []byte(namedDefinition))
	if err != nil {
		t.Fatal(err)
	}
	if d.Switches[0].Name != "dvs" || d.Switches[0].PortGroups[1].Name != "db" || d.Templates[0].Name != "racked" ||
		d.Templates[0].Switches[0].Uplinks[0] != (HostUplink{"uplink1", "eno1"}) || d.Hosts[1].Name != "esx2" ||
		d.Ports[0].ID != "1" || d.Ports[0].Name != "backup" {
		t.Errorf("definition %+v", d)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"two names": {"db:\n", "db:\n        name: other\n", "fleet.yaml:6:7: switches[dvs].portGroups[db].name: db: " +
			"the object says other itself"},
		"twice": {"esx2: }", "esx1: }", "fleet.yaml:13:36: hosts[esx1].name: esx1: another host has " +
			"this name"},
		"no name":        {"  racked:", "  [racked]:", "fleet.yaml:9:3: templates[0].name: [racked]: must be text"},
		"a truth value":  {"db:\n", "true:\n", "switches[dvs].portGroups[true].name: true: must be text"},
		"no object":      {"esx2: }", "esx2: 7}", "hosts[esx2]: 7: must be a mapping"},
		"a list of none": {"uplinks: {uplink1: {device: eno1}}", "uplinks: 7", "must be a list"},
		"unknown field": {"labels: {rack: a}}", "lables: {rack: a}}", "hosts[esx1].lables: unknown field: " +
			"did you mean labels?"},
		"of another thing": {"active: [uplink1]", "active: {uplink1: }", "must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(namedDefinition, c.from, c.to, 1)
			if text == namedDefinition {
				t.Fatal("the case changes nothing")
			}
			_, err := ParseDefinition("fleet.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _, err := Parse("heddle.yaml", []byte("switches: {lab: {}}\n")); err == nil {
		t.Error("a host's own file takes switches by name")
	}
}
