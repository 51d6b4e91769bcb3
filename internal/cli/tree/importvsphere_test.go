package tree

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"heddle/internal/cli"
	"heddle/internal/spec"
)

const labDump = "../../vsphere/testdata/lab.json"

// runImport runs an import that asks no controller.
func runImport(ctx context.Context, stdin io.Reader, args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = Run(ctx, cli.Deps{Stdin: stdin, Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }},
		append([]string{"import", "vsphere"}, args...))
	return out.String(), errs.String(), status
}

// An import without --apply prints what was read and what to look after, or the definition, which can be applied.
func TestImportVsphere_PrintsTheDefinitionAndWhatToLookAfter(t *testing.T) {
	out, errs, status := runImport(t.Context(), nil, labDump)
	for _, want := range []string{"read: 1 switch, 3 port groups, 1 LAG, 2 hosts, 0 host ports\n",
		"absent: port group lab/web/front: ingress traffic shaping average 100000000 bit/s\n",
		"changed: port group lab/isolated: private VLAN 301\n", "\nnothing was changed: "} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s%s", want, out, errs)
		}
	}
	for line := range strings.Lines(out) {
		if len(line) > cli.TableWidth+len("\n") {
			t.Errorf("a line is too wide: %q", line)
		}
	}
	f, err := os.Open(labDump)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, notes, code := runImport(t.Context(), f, "-", "-o", "yaml")
	if status != 0 || code != 0 || !strings.HasPrefix(notes, "read: 1 switch,") {
		t.Errorf("status %d and %d: %s", status, code, notes)
	}
	if _, err := spec.ParseDefinition("printed", []byte(text)); err != nil {
		t.Error(err)
	}
}

// With --apply the import joins what the controllers define, on the revision that it was read at.
func TestImportVsphere_JoinsTheDefinition(t *testing.T) {
	f := newFleetStand(t, nil)
	f.definition = "switches: [{name: other}]\n"
	out, errs, status := f.run("import", "vsphere", labDump, "--apply", "-m", "from vCenter", "--controller", f.socket)
	if status != 0 || len(f.applied) != 1 {
		t.Fatalf("status %d, %d changes: %s%s", status, len(f.applied), out, errs)
	}
	q := f.applied[0]
	def, err := spec.ParseDefinition("sent", []byte(q.Content))
	if err != nil || len(def.Switches) != 2 || def.Switches[0].Name != "other" || def.Switches[1].Name != "lab" {
		t.Errorf("it sent %s (%v)", q.Content, err)
	}
	if q.Revision != 18 || q.Message != "from vCenter" || q.DryRun {
		t.Errorf("it asked for %+v", q)
	}
	f.definition = "switches: [{name: lab, mtu: 1500}]\n"
	_, errs, status = f.run("import", "vsphere", labDump, "--apply", "--controller", f.socket)
	if status != cli.ExitFailure || len(f.applied) != 1 ||
		!strings.Contains(errs, "(--replace takes the imported one): switch lab") {
		t.Errorf("a collision: status %d, %d changes: %s", status, len(f.applied), errs)
	}
	if _, errs, status = f.run("import", "vsphere", labDump, "--apply", "--replace", "--dry-run", "--controller",
		f.socket); status != 0 || len(f.applied) != 2 || !f.applied[1].DryRun {
		t.Errorf("a dry run that replaces: status %d, %d changes: %s", status, len(f.applied), errs)
	}
}

// Wrong use is told apart from what a dump lacks, and an import from a pipe ends when it is interrupted.
func TestImportVsphere_WrongUse(t *testing.T) {
	for _, c := range []struct {
		want   string
		status int
		args   []string
	}{{"say what to read", cli.ExitUsage, nil},
		{"either files or a vCenter", cli.ExitUsage, []string{labDump, "--vcenter", "vcenter.example"}},
		{"go with --vcenter", cli.ExitUsage, []string{labDump, "--user", "reader"}},
		{"heddle-vsphere is not there", cli.ExitFailure, []string{"--vcenter", "vcenter.example"}},
		{"nowhere.json", cli.ExitUsage, []string{"nowhere.json"}},
		{"write it as vmnic0=eno1", cli.ExitUsage, []string{labDump, "--device", "vmnic0"}},
		{"output format", cli.ExitUsage, []string{labDump, "-o", "xml"}},
		{"this is no dump in JSON", cli.ExitFailure, []string{"../../vsphere/testdata/lab.yaml"}},
		{"there is no switch nope", cli.ExitFailure, []string{labDump, "--switch", "nope"}}} {
		if out, errs, status := runImport(t.Context(), nil, c.args...); status != c.status ||
			!strings.Contains(errs, c.want) {
			t.Errorf("%q: status %d: %s%s, want %q", c.args, status, out, errs, c.want)
		}
	}
	zip := strings.NewReader("PK\x03\x04\x14\x00")
	if _, errs, status := runImport(t.Context(), zip, "-"); status != cli.ExitFailure ||
		!strings.Contains(errs, "Export Configuration of the vSphere client makes") {
		t.Errorf("an export of the vSphere client: status %d: %s", status, errs)
	}
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(w, `{"self":`)
		cancel()
	}()
	if _, errs, status := runImport(ctx, r, "-"); status == 0 {
		t.Errorf("interrupted: status %d: %s", status, errs)
	}
}
