package tree

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/clitest"
	"heddle/internal/cli/config"
	"heddle/internal/cli/labcmd"
	"heddle/internal/cli/port"
	"heddle/internal/observe/event"
	"heddle/internal/version"
)

// withoutOutput returns the commands that print no document, and why.
func withoutOutput() map[string]string {
	return map[string]string{
		"heddle agent":        "it runs and logs",
		"heddle cni":          "its output is the CNI specification's",
		"heddle incus-follow": "it runs and logs",
		"heddle libvirt-hook": "its output is libvirt's",
		"heddle metrics":      "its output is Prometheus's",
		"heddle lab exec":     "its output is the command's",
	}
}

// Every command whose output programs may want has -o with JSON and YAML.
func TestEveryCommandHasJSONAndYAML(t *testing.T) {
	none := withoutOutput()
	cli.EveryCommand(NewRoot(cli.Deps{Getenv: os.Getenv}), func(c *cobra.Command) {
		path := c.CommandPath()
		if c.HasSubCommands() || strings.HasPrefix(path, "heddle completion") || path == "heddle help" || c.Hidden ||
			c.Parent().Hidden {
			return
		}
		f := c.Flags().Lookup("output")
		switch {
		case f == nil && none[path] == "":
			t.Errorf("%s has no -o", path)
		case f != nil && none[path] != "":
			t.Errorf("%s has -o, and is excepted because %s", path, none[path])
		case f != nil && !(strings.Contains(f.Usage, "json") && strings.Contains(f.Usage, "yaml")):
			t.Errorf("%s: -o is %s", path, f.Usage)
		}
		delete(none, path)
	})
	if len(none) > 0 {
		t.Errorf("no such commands: %v", none)
	}
}

// Examples are read, and copied, at 80 columns.
func TestExamplesFit80Columns(t *testing.T) {
	n := 0
	cli.EveryCommand(NewRoot(cli.Deps{Getenv: os.Getenv}), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			n++
			if w := utf8.RuneCountInString(strings.TrimRight(line, "\n")); w > 80 {
				t.Errorf("%s: an example of %d columns: %s", c.CommandPath(), w, line)
			}
		}
	})
	if n < 100 {
		t.Errorf("only %d lines of examples", n)
	}
}

// documents returns the objects of a stream, read as JSON lines or as YAML documents and shown as JSON.
func documents(t *testing.T, format, text string) (list []string) {
	t.Helper()
	read := json.NewDecoder(strings.NewReader(text)).Decode
	if format == "yaml" {
		all := yaml.NewDecoder(strings.NewReader(text))
		read = func(v any) error { return all.Decode(v) }
	}
	for {
		var v any
		if read(&v) != nil {
			return list
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(b))
	}
}

// A stream has the same content in YAML as in JSON.
func TestStreamsAreAlsoYAML(t *testing.T) {
	for _, row := range []struct {
		args string
		n    int
	}{
		{"events --no-follow", 2}, {"top --once --interval 100ms", 1}, {"top --batch -n 2 --interval 100ms", 2},
		{"flows top --once", 1}, {"flows top --once --by address", 1}, {"flows watch", 1},
		{"flows watch --by address", 1}, {"capture any", 11},
	} {
		t.Run(row.args, func(t *testing.T) {
			var read [2][]string
			for i, format := range []string{"json", "yaml"} {
				s := longNamed()
				s.events = []api.Events{{Events: []event.Event{{Seq: 1, Kind: event.Link, To: "no", Text: "12:30"},
					{Seq: 2, Kind: event.Link, To: "up"}}}}
				s.captured = clitest.CapturedFrames()
				s.flows.tops, s.flows.sums = []api.FlowTop{{}}, []api.FlowSums{{By: api.ByAddress}}
				s.flows.records = []api.FlowRecords{{Records: []api.FlowRecord{{}}}}
				out, _, _ := newConsole(t, s).run(append(strings.Fields(row.args), "-o", format)...)
				read[i] = documents(t, format, out)
				if strings.HasPrefix(row.args, "top") { // of two runs at different times
					for j := range read[i] {
						_, read[i][j], _ = strings.Cut(read[i][j], `"rows"`)
						read[i][j], _, _ = strings.Cut(read[i][j], `"time"`)
					}
				}
				if len(read[i]) != row.n {
					t.Errorf("-o %s: %d documents, want %d:\n%s", format, len(read[i]), row.n, out)
				}
			}
			if d := cmp.Diff(read[0], read[1]); d != "" {
				t.Error(d)
			}
		})
	}
}

// The result of a check as a document for programs has the faults, which are still on standard error and in the exit
// status.
func TestCheck_AsADocument(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.yaml": "switches: [{name: s, uplinks: [{name: u, device: e}], portGroups: [{name: g}]}]\n",
		"bad.yaml":  "switches: [{name: s, portGroups: [{name: g, vlan: {access: 4095}}]}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		file, format string
		status       int
		want         config.Checked
	}{
		{"good.yaml", "json", 0, config.Checked{Valid: true, Switches: 1, PortGroups: 1, Uplinks: 1}},
		{"good.yaml", "yaml", 0, config.Checked{Valid: true, Switches: 1, PortGroups: 1, Uplinks: 1}},
		{"bad.yaml", "json", 2, config.Checked{}},
		{"bad.yaml", "yaml", 2, config.Checked{}},
	} {
		t.Run(row.file+" "+row.format, func(t *testing.T) {
			file := filepath.Join(dir, row.file)
			out, errs, status := newConsole(t, &standIn{}).run("check", "-f", file, "-o", row.format)
			docs := documents(t, row.format, out)
			if status != row.status || len(docs) != 1 {
				t.Fatalf("status %d: %s%s", status, out, errs)
			}
			var got config.Checked
			if err := json.Unmarshal([]byte(docs[0]), &got); err != nil {
				t.Fatal(err)
			}
			faults := slices.Clone(got.Faults)
			if got.Faults = nil; got.File != file || row.want.Valid != (len(faults) == 0) ||
				row.want.Valid != (errs == "") {
				t.Errorf("%s %v\n%s", got.File, faults, errs)
			}
			if len(faults) > 0 && (len(faults) != 1 || faults[0].Line != 1 || faults[0].Value != "4095" ||
				faults[0].Path != "switches[s].portGroups[g].vlan.access") {
				t.Errorf("%+v", faults)
			}
			got.File, got.Warnings, got.Notes = "", nil, nil
			if d := cmp.Diff(row.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestVersion_AsADocument(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			docs := documents(t, format, newConsole(t, &standIn{}).must("version", "-o", format))
			var v version.Info
			if len(docs) != 1 || json.Unmarshal([]byte(docs[0]), &v) != nil || !strings.HasPrefix(v.Go, "go1.") {
				t.Errorf("%q: %+v", docs, v)
			}
		})
	}
}

// The answer of "port disconnect" says which port it was, and whether it existed.
func TestPortDisconnect_AsADocument(t *testing.T) {
	there, gone := furnished(), furnished()
	gone.err = api.NewError(api.NotFound, "there is no port vm1/eth0")
	for _, row := range []struct {
		name string
		s    *standIn
		args string
		want port.Disconnected
		port string
	}{
		{"there", there, "port disconnect vm1/eth0", port.Disconnected{Disconnected: true}, "vm1/eth0"},
		{"not there", gone, "port disconnect vm1/eth0 --if-connected", port.Disconnected{}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got port.Disconnected
			out := newConsole(t, row.s).must(append(strings.Fields(row.args), "-o", "json")...)
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if (got.Port == nil) != (row.port == "") || got.Port != nil && got.Port.Name != row.port {
				t.Errorf("%s", out)
			}
			if got.Port = nil; got != row.want {
				t.Errorf("%s", out)
			}
		})
	}
	if out := newConsole(t, gone).must("port", "disconnect", "vm1/eth0", "--if-connected"); out !=
		"port vm1/eth0: nothing to disconnect\n" {
		t.Errorf("%q", out)
	}
}

// The answers of labs are documents, too, even if this machine cannot have labs.
func TestLabCheck_AsADocument(t *testing.T) {
	out, errs, status := newConsole(t, &standIn{}).run("lab", "check", "-o", "json")
	var v labcmd.LabCheck
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Able != (status == 0) ||
		v.Able != (v.Reason == "") || !v.Able && !strings.Contains(errs, v.Reason) {
		t.Errorf("status %d: %s%s%v", status, out, errs, err)
	}
}
