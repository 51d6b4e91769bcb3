package tree

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec"
)

// exported is a definition with texts that other tools may take for something else.
const exported = "switches:\n- name: dvs\n  uplinks: [{name: u1}, {name: u2}]\n  portGroups:\n" +
	"  - {name: web, vlan: {access: 10}}\n  - {name: 'on', vlan: {access: 11}}\n" +
	"templates:\n- name: racks\n  switches: [{name: dvs, uplinks: [{name: u1, device: '{{x}}'}]}]\n"

// namedExport is the part of an export that the tests look at.
type namedExport struct {
	Switches map[string]struct {
		Uplinks    []struct{ Name string }
		PortGroups map[string]struct{ VLAN struct{ Access int } }
	}
	Templates map[string]any
}

func (n namedExport) check(t *testing.T, text string) {
	t.Helper()
	dvs := n.Switches["dvs"]
	if len(dvs.Uplinks) != 2 || dvs.Uplinks[1].Name != "u2" || dvs.PortGroups["web"].VLAN.Access != 10 ||
		dvs.PortGroups["on"].VLAN.Access != 11 || len(n.Templates) != 1 {
		t.Errorf("another definition: %+v\n%s", n, text)
	}
}

// Both forms are mappings by name, in YAML and JSON, and what is printed is read again as the same definition. The
// table that other commands print is none that a tool could read, and is refused.
func TestExport_IsTheDefinitionByName(t *testing.T) {
	f := newFleetStand(t, nil)
	f.definition = strings.Replace(exported, "'{{x}}'", "eno1", 1)
	for _, tool := range []string{"terraform", "ansible"} {
		for _, format := range []string{"", "yaml", "json"} {
			t.Run(tool+" "+format, func(t *testing.T) {
				args := []string{"export", tool, "--controller", f.socket}
				if format != "" {
					args = append(args, "-o", format)
				}
				out, errs, status := f.run(args...)
				if status != 0 || errs != "" {
					t.Fatalf("status %d: %s%s", status, out, errs)
				}
				first, _, _ := strings.Cut(out, "\n")
				if want := "# exported from revision 18 by \"heddle export " + tool + "\""; format != "json" &&
					first != want {
					t.Errorf("the first line is %q, want %q", first, want)
				}
				body := map[string]namedExport{}
				if tool == "terraform" {
					body[""] = readExport[namedExport](t, format, out)
				} else {
					body = readExport[map[string]namedExport](t, format, out)
				}
				for name, one := range body {
					if want := map[string]string{"terraform": "", "ansible": "heddle_definition"}[tool]; name != want {
						t.Errorf("the variable is %q, want %q", name, want)
					}
					one.check(t, out)
				}
			})
		}
	}
}

// readExport reads what was exported with another reader than the one of definitions.
func readExport[T any](t *testing.T, format, text string) (v T) {
	t.Helper()
	var err error
	if format == "json" {
		err = json.Unmarshal([]byte(text), &v)
	} else { // by way of JSON, whose names do not depend on the case
		var any map[string]any
		if err = yaml.Unmarshal([]byte(text), &any); err == nil {
			var b []byte
			if b, err = json.Marshal(any); err == nil {
				err = json.Unmarshal(b, &v)
			}
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// A file is exported without a controller; the export is applied as the same definition, and exported again as the same
// text.
func TestExport_OfAFileIsReadAgain(t *testing.T) {
	f := newFleetStand(t, nil)
	dir := t.TempDir()
	file, again := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "again.yaml")
	if err := os.WriteFile(file, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, status := f.run("export", "terraform", "-f", file)
	if status != 0 || !strings.HasPrefix(out, "# exported from "+file+" by ") {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	def, err := spec.ParseDefinition("exported", []byte(out))
	if err != nil || len(def.Switches) != 1 || len(def.Switches[0].PortGroups) != 2 ||
		def.Templates[0].Switches[0].Uplinks[0].Device != "{{x}}" {
		t.Fatalf("it is read as %+v: %v", def, err)
	}
	if err := os.WriteFile(again, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	second, _, _ := f.run("export", "terraform", "-f", again)
	if body(second) != body(out) {
		t.Errorf("exported again it is\n%s\nand was\n%s", second, out)
	}
}

// body is an export without its first line, which says of what it is.
func body(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// What Ansible would take for a template is tagged in YAML, and has no form in JSON.
func TestExport_OfTextsThatAnsibleTakesForTemplates(t *testing.T) {
	f := newFleetStand(t, nil)
	f.definition = exported
	out, errs, status := f.run("export", "ansible", "--variable", "network", "--controller", f.socket)
	if status != 0 || !strings.Contains(out, "\nnetwork:\n") || !strings.Contains(out, "!unsafe") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if out, _, _ := f.run("export", "terraform", "--controller", f.socket); strings.Contains(out, "!unsafe") {
		t.Errorf("Terraform has no templates there:\n%s", out)
	}
	_, errs, status = f.run("export", "ansible", "-o", "json", "--controller", f.socket)
	if status != 1 || !strings.Contains(errs, "export it as YAML") {
		t.Errorf("as JSON: status %d: %s", status, errs)
	}
}

// What is wrong is said with what to do, and nothing is printed.
func TestExport_RefusesWrongInput(t *testing.T) {
	f := newFleetStand(t, nil)
	dir := t.TempDir()
	bad, gone := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "gone.yaml")
	if err := os.WriteFile(bad, []byte("switches:\n- {nam: dvs}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"a table":             {[]string{"terraform", "-o", "table"}, 2, "yaml or json"},
		"no tool":             {[]string{"puppet"}, 2, "puppet"},
		"an argument":         {[]string{"ansible", "fleet.yaml"}, 2, "takes no argument"},
		"a file's revision":   {[]string{"terraform", "-f", bad, "--revision", "3"}, 2, "a file has no revisions"},
		"no variable":         {[]string{"ansible", "--variable", "2nd net"}, 2, "begins with no digit"},
		"a file that is gone": {[]string{"terraform", "-f", gone}, 2, "gone.yaml"},
		"a faulty file":       {[]string{"ansible", "-f", bad}, 2, "bad.yaml:2"},
		"no controller":       {[]string{"ansible", "--controller", filepath.Join(dir, "none.sock")}, 1, "none.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := f.run(append([]string{"export"}, c.args...)...)
			if status != c.status || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("status %d, want %d with %q: %s%s", status, c.status, c.want, out, errs)
			}
		})
	}
}
