package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const sectionHead = `switches:
  - name: lab
    uplinks: [{name: up0, device: eno1}]
    portGroups:
      - {name: web, vlan: {access: 10}}
`

const sectionPorts = `ports:
  - {name: vm1, switch: lab, portGroup: web, device: tap1, mac: "02:00:00:00:00:01"}
  # the second
  - name: vm2
    switch: lab
    portGroup: web
    device: tap2
`

// sameReading compares reading a file after another with reading it alone: the values, the position of each, and all
// faults.
func sameReading(before *Config, data string) error {
	want, wantErr := Parse("h.yaml", []byte(data))
	got, gotErr := ParseAfter(before, "h.yaml", []byte(data))
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		return fmt.Errorf("after another: %v\nby itself: %v", gotErr, wantErr)
	}
	if wantErr != nil {
		return nil
	}
	if !reflect.DeepEqual(got.Switches, want.Switches) || !reflect.DeepEqual(got.Ports, want.Ports) {
		return fmt.Errorf("after another:\n%+v\nby itself:\n%+v", got, want)
	}
	nothing := func(string) (int, bool) { return 0, false }
	alone := func(string) string { return "" }
	w, g := MissingDevices(want, nothing, alone), MissingDevices(got, nothing, alone)
	if !reflect.DeepEqual(g, w) {
		return fmt.Errorf("places after another:\n%s\nby itself:\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
	for key := range want.src.pos {
		if a, _ := got.src.at(key); a != want.src.pos[key] {
			return fmt.Errorf("place %v, want %v", a, want.src.pos[key])
		}
	}
	if want.src.section == nil {
		return nil
	}
	for key := range want.src.section.pos {
		a, okA := got.src.at(key)
		b, okB := want.src.at(key)
		if a != b || okA != okB {
			return fmt.Errorf("place of a port's value %v, want %v", a, b)
		}
	}
	return nil
}

// A file with unchanged ports reuses them, wherever they have moved to.
func TestParseAfter_PortsThatStayAreNotReadAgain(t *testing.T) {
	before, err := Parse("h.yaml", []byte(sectionHead+sectionPorts))
	if err != nil {
		t.Fatal(err)
	}
	next := "---\n# more lines\n\n" + strings.Replace(sectionHead, "access: 10", "access: 20", 1) + "\n"
	for range 3 {
		if err := sameReading(before, next+sectionPorts); err != nil {
			t.Fatal(err)
		}
		after, err := ParseAfter(before, "h.yaml", []byte(next+sectionPorts))
		if err != nil {
			t.Fatal(err)
		}
		if &after.Ports[0] != &before.Ports[0] {
			t.Fatal("the ports were read again")
		}
		before, next = after, "# yet more\n"+strings.TrimPrefix(next, "---\n")
	}
}

// Changes of what is before and in the ports: a file read after another gives the same result as if it is read alone.
func TestParseAfter_IsParse(t *testing.T) {
	heads := []string{
		sectionHead,
		strings.Replace(sectionHead, "web", "db", 1), // the ports' group is gone
		strings.Replace(sectionHead, "access: 10", "access: 0", 1),
		strings.Replace(sectionHead, "access: 10", "access: 10, acces: 3", 1),
		"# comment\n" + sectionHead,
		"---\n" + sectionHead,
		"--- # begin\n" + sectionHead,
		"%YAML 1.2\n---\n" + sectionHead,
		sectionHead + "---\n",
		sectionHead + "...\n",
		sectionHead + "      - {name: open,\n",
		sectionHead + "      - name: |\n          text\n",
		sectionHead + "      - name: \"open\n",
		sectionHead + "? ports\n",
		sectionHead + "? x\n",
		sectionHead + "ports: []\n",
		sectionHead + "other:\n",
		sectionHead + "other:\n-\n",
		sectionHead + "\t\n",
		strings.ReplaceAll(sectionHead, "\n", "\r\n"),
		strings.Replace(sectionHead, "name: lab", "name: &lab lab", 1),
		strings.Replace(sectionHead, "eno1", "tap1", 1),
		strings.Replace(sectionHead, "up0", "vm1", 1),
		strings.Replace(sectionHead, "name: lab", "name: other", 1),
		strings.Replace(sectionHead, "name: lab", "name: lab\n    mtu: 1400", 1),
		strings.Replace(sectionHead, "name: lab", "name: lab\n    kind: standard", 1),
		strings.Replace(sectionHead, "access: 10}", "access: 10}, overrides: {security: true, vlan: true}", 1),
		sectionHead + "  - name: second\n    uplinks: [{name: up0, device: host0}]\n",
		sectionHead + "  - name: lab\n",
		"host: {macTable: 1}\n" + sectionHead,
		sectionHead + "    tunnel: {endpoints: [{hostPort: host0}], peers: [{address: 192.0.2.9}]}\n",
		sectionHead + "    tunnel: {endpoints: [{hostPort: host1}], peers: [{address: 192.0.2.9}]}\n",
		sectionHead + "    tunnel: {endpoints: [{hostPort: vm1}], peers: [{address: 192.0.2.9}]}\n",
		strings.Replace(sectionHead, "vlan: {access: 10}", "overlay: {vni: 7}", 1) +
			"    tunnel: {endpoints: [{hostPort: host0}], peers: [{address: 192.0.2.9}]}\n",
		strings.Replace(sectionHead, "vlan: {access: 10}", "overlay: {vni: 7}", 1) +
			"    tunnel: {endpoints: [{address: 192.0.2.8}], peers: [{address: 192.0.2.9}]}\n",
		"{switches: [{name: lab, portGroups: [{name: web}]}]}\n",
		"{switches: [{name: lab, portGroups: [{name: web}]}],\n",
		"switches: [{name: lab, portGroups: [{name: web}]},\n",
		"switches: &s [{name: lab, portGroups: [{name: web}]}]\n",
		"&root\n" + sectionHead,
		" switches: [{name: lab, portGroups: [{name: web}]}]\n",
		"", "#\n", "\n", "- x\n", "text\n", "\ufeff" + sectionHead,
	}
	tails := []string{
		sectionPorts, "ports:\n", "ports: []\n", "ports: null\n", "ports: [\n]\n", "ports:",
		strings.ReplaceAll(sectionPorts, "  ", ""),
		strings.Replace(sectionPorts, "ports:", "\"ports\":", 1),
		strings.Replace(sectionPorts, "ports:", "ports :", 1),
		strings.Replace(sectionPorts, "switch: lab", "switch: *lab", 1),
		strings.Replace(sectionPorts, "tap2", "tap1", 1),
		sectionPorts + "  - {name: host0, switch: lab, portGroup: web, role: host, mtu: 1450, addresses: " +
			"[192.0.2.1/24]}\n",
		sectionPorts + "  - {name: vm3, switch: lab, portGroup: web, security: {macLearning: {enabled: true}}}\n",
		sectionPorts + "  - {name: vm3, switch: lab, portGroup: web, vlan: {access: 7}}\n",
		sectionPorts + "  - {name: vm3, switch: lab, portGroup: web, blocked: true}\n",
		sectionPorts + "  - {name: vm3, switch: lab, portGroup: web, txUplink: true}\n",
		sectionPorts + "  - {name: tunnel, switch: lab, portGroup: web}\n",
		sectionPorts + "switches: []\n", sectionPorts + "other: 1\n", sectionPorts + "---\n", sectionPorts +
			"...\n# end\n",
		sectionPorts + "# end", sectionPorts + "  - {name: vm3, switch: lab, portGroup: web, device: \"tap\n3\"}\n",
		"ports: |\n  x\n", "ports: *s\n", "]\n" + sectionPorts, "}\n", "web\"\n" + sectionPorts, " " + sectionPorts,
		"ports: !!seq\n  - {name: vm1, switch: lab, portGroup: web}\n",
	}
	reused := 0
	for _, h := range heads {
		for _, p := range tails {
			before, err := Parse("h.yaml", []byte(h+p))
			if err != nil {
				continue
			}
			for _, next := range heads {
				if err := sameReading(before, next+p); err != nil {
					t.Fatalf("before:\n%s%s\nnow:\n%s%s\n%v", h, p, next, p, err)
				}
				if s := before.src.section; s != nil && s.whole && len(before.Ports) > 0 {
					reused++
				}
			}
		}
	}
	if reused < 100 {
		t.Errorf("only %d pairs could share their ports: this test says little", reused)
	}
}

// Any cut of any two files, some of which fit together.
func TestParseAfter_IsParse_Cuts(t *testing.T) {
	full := sectionHead + sectionPorts
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(full))
		a, b := cut.Draw(t, "a"), cut.Draw(t, "b")
		before, err := Parse("h.yaml", []byte(full[:a]+full[b:]))
		if err != nil {
			before, _ = Parse("h.yaml", []byte(full))
		}
		c, d := cut.Draw(t, "c"), cut.Draw(t, "d")
		if err := sameReading(before, full[:c]+full[d:]); err != nil {
			t.Fatalf("%q after %q: %v", full[:c]+full[d:], full[:a]+full[b:], err)
		}
	})
}
