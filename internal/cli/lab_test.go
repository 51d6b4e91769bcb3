package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/lab/cmd"
	"heddle/internal/lab/experiment"
)

func TestLabCommandLineFaults(t *testing.T) {
	c := newConsole(t, &standIn{})
	bad := filepath.Join(c.dir, "bad.yaml")
	text := "name: x\nhosts: [{name: h, configFile: h.yaml}]\nvms:\n  - {name: v, host: nowhere, nic: e1000}\n"
	if err := os.WriteFile(bad, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		args []string
		says []string
	}{
		{[]string{"lab", "up"}, []string{"takes SCENARIO"}},
		{[]string{"lab", "up", "nonsense"}, []string{`no built-in scenario "nonsense"`, "nested-mac-learning"}},
		{[]string{"lab", "up", "nested-mac-learning/nonsense"}, []string{`no row "nonsense"`}},
		{[]string{"lab", "up", "./none.yaml"}, []string{"none.yaml"}},
		{[]string{"lab", "up", bad}, []string{bad + ":2:31: ", bad + ":4:21: ", bad + ":4:35: "}},
		{[]string{"lab", "down", "nonsense"}, []string{`no such lab: "nonsense"`, "heddle lab list"}},
		{[]string{"lab", "exec", "nonsense"}, []string{"takes a lab and a node"}},
		{[]string{"lab", "exec", "nonsense", "node"}, []string{"no such lab"}},
		{[]string{"lab", "run", "nonsense"}, []string{`no experiment "nonsense"`, "placement-paths", "message-size"}},
		{[]string{"lab", "run", "message-size", "--row", "4096"}, []string{`no row "4096"`, "4098"}},
		{[]string{"lab", "run", "message-size", "--simulate"}, []string{"leave --simulate out"}},
		{[]string{"lab", "run", "placement-paths", "-o", "xml"}, []string{"table, json or yaml"}},
	} {
		stdout, stderr, status := c.run(k.args...)
		if status != ExitUsage || stdout != "" {
			t.Errorf("%v: status %d, output %q, want %d and none", k.args, status, stdout, ExitUsage)
		}
		for _, want := range k.says {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v says nothing of %q:\n%s", k.args, want, stderr)
			}
		}
	}
}

func TestLabListNamesWhatComesWithTheProgram(t *testing.T) {
	c := newConsole(t, &standIn{})
	stdout, stderr, status := c.run("lab", "list", "-o", "json")
	if status != ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var l cmd.List
	if err := json.Unmarshal([]byte(stdout), &l); err != nil {
		t.Fatal(err)
	}
	if l.Labs == nil || len(l.Labs) != 0 || len(l.Scenarios) != len(experiment.ScenarioNames()) || len(l.Experiments) != len(experiment.Names())+6 {
		t.Errorf("lab list: %s", stdout)
	}
	table, _, _ := c.run("lab", "list")
	for _, want := range append(append(experiment.Names(), experiment.ScenarioNames()...), "live-change", "failover", "teaming", "hostile-neighbour", "hostile-guest", "message-size") {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

func TestLabExecPassesTheCommandsFlagsOn(t *testing.T) {
	c := newConsole(t, &standIn{})
	// -c is the command's; were it taken for a flag of heddle, the complaint would be about it.
	_, stderr, status := c.run("lab", "exec", "nonsense", "node", "ping", "-c", "3", "10.0.0.1")
	if status != ExitUsage || !strings.Contains(stderr, "no such lab") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
