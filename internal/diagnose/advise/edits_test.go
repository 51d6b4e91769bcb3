package advise

import (
	"heddle/internal/diagnose"
	"testing"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec"
)

// TestEveryRemedyThatEditsTheFileIsValid applies each edit to the configuration in which the fault was found.
func TestEveryRemedyThatEditsTheFileIsValid(t *testing.T) {
	edits := 0
	for _, c := range allCases() {
		text := c.text(t)
		r := newRig(t, text)
		c.provoke(r)
		for _, f := range r.found(c.rule) {
			if f.Edit == nil {
				continue
			}
			edits++
			after := edited(t, text, f.Edit)
			if _, err := spec.Parse("heddle.yaml", []byte(after)); err != nil {
				t.Errorf("%s: %s: %s: %v\n%s", c.rule, f.Edit.Object(), f.Edit.Set, err, after)
			}
		}
	}
	if edits < 15 {
		t.Errorf("only %d edits", edits)
	}
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
	switch e.Kind {
	case diagnose.EditPort:
		merge(in(root, "ports", e.Name), set)
	case diagnose.EditSwitch:
		merge(in(root, "switches", e.Name), set)
	case diagnose.EditGroup:
		merge(in(in(root, "switches", e.Switch), "portGroups", e.Name), set)
	case diagnose.EditUplink:
		merge(in(in(root, "switches", e.Switch), "uplinks", e.Name), set)
	}
	out, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func merge(into, set map[string]any) {
	for k, v := range set {
		sub, ok := v.(map[string]any)
		old, had := into[k].(map[string]any)
		if ok && had && k != "vlan" { // a VLAN policy is replaced as a whole
			merge(old, sub)
			continue
		}
		into[k] = v
	}
}
