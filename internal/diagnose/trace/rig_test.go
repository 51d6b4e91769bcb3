package trace

import (
	"heddle/internal/diagnose"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// mac returns the n-th MAC. The ports of test configurations have them: vm1 has the MAC 02:00:00:00:00:01 and the
// device dev-vm1.
func mac(n byte) plan.MAC { return plan.MAC{2, 0, 0, 0, 0, n} }

func id(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }

// host makes a host from a configuration: every device exists and is up with MTU 1500, uplinks have MACs from 02:…:a1
// on.
func host(t testing.TB, text string) *Host {
	t.Helper()
	cfg, err := spec.Parse("lab.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{Plan: p, Facts: plan.Facts{}, Now: time.Hour, NewModel: model.New, File: "lab.yaml",
		RunTime: map[string]spec.Port{}, ByCommand: map[string]ByCommand{}, Waiting: map[plan.PortID]problem.Problem{}}
	for _, sw := range p.Switches {
		for i, u := range sw.Uplinks {
			h.Facts[u.ID] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: mac(0xa1 + byte(i))}
		}
		for _, port := range sw.Ports {
			h.Facts[port.ID] = plan.Fact{Up: true, MTU: 1500}
		}
	}
	for _, sw := range cfg.Switches {
		for _, g := range sw.PortGroups {
			bare := &spec.Config{Switches: []spec.Switch{sw},
				Ports: []spec.Port{{Name: "x", Switch: sw.Name, PortGroup: g.Name}}}
			r, err := plan.Resolve(bare, nil)
			if err != nil {
				t.Fatal(err)
			}
			h.Groups = append(h.Groups, Group{Switch: sw.Name, Name: g.Name, Policy: *r.Switches[0].Ports[0].Policy,
				Overrides: g.Overrides})
		}
	}
	return h
}

// config writes a configuration: the switch's own lines, port groups, and ports as "vm1 web" or "vm1 web {mtu: 1400}".
func config(sw, groups string, ports ...string) string {
	text := "switches:\n- name: lab\n  kind: distributed\n"
	for line := range strings.Lines(sw) {
		text += "  " + line
	}
	text = strings.TrimRight(text, "\n") + "\n  portGroups:\n"
	for line := range strings.Lines(groups) {
		text += "  - " + strings.TrimRight(line, "\n") + "\n"
	}
	text += "ports:\n"
	for _, p := range ports {
		f := strings.SplitN(p, " ", 3)
		more := ""
		if len(f) == 3 {
			more = ", " + f[2]
		}
		device := ", device: dev-" + f[0]
		if strings.Contains(more, "role: host") {
			device = ""
		}
		text += "- {name: " + f[0] + ", switch: lab, portGroup: " + f[1] + device + ", mac: '" +
			mac(f[0][len(f[0])-1]-'0').String() + "'" + more + "}\n"
	}
	return text
}

// edited applies an edit to a configuration.
func edited(t *testing.T, text string, e *diagnose.Edit) string {
	t.Helper()
	var root, set map[string]any
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(e.Set), &set); err != nil {
		t.Fatalf("%q is no YAML: %v", e.Set, err)
	}
	in := func(m map[string]any, list, name string) map[string]any {
		for _, x := range m[list].([]any) {
			if o := x.(map[string]any); o["name"] == name {
				return o
			}
		}
		t.Fatalf("no %q in %s of\n%s", name, list, text)
		return nil
	}
	var object map[string]any
	switch e.Kind {
	case diagnose.EditPort:
		object = in(root, "ports", e.Name)
	case diagnose.EditSwitch:
		object = in(root, "switches", e.Name)
	case diagnose.EditGroup:
		object = in(in(root, "switches", e.Switch), "portGroups", e.Name)
	case diagnose.EditUplink:
		object = in(in(root, "switches", e.Switch), "uplinks", e.Name)
	}
	merge(object, set)
	out, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// merge merges set into an object; a VLAN policy is replaced as a whole.
func merge(into, set map[string]any) {
	for k, v := range set {
		sub, ok := v.(map[string]any)
		old, had := into[k].(map[string]any)
		if ok && had && k != "vlan" {
			merge(old, sub)
			continue
		}
		into[k] = v
	}
}

func run(t testing.TB, h *Host, q diagnose.Request) *diagnose.Report {
	t.Helper()
	r, err := Run(h, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// to returns the fields of a frame to a MAC.
func to(dst plan.MAC, f diagnose.Fields) *diagnose.Fields {
	f.DstMAC = &dst
	return &f
}

func ptr[T any](v T) *T { return &v }
