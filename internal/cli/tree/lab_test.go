package tree

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
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
		of   int // the exit status
	}{
		{[]string{"lab", "up"}, []string{"takes SCENARIO"}, cli.ExitUsage},
		{[]string{"lab", "up", "nonsense"}, []string{`no built-in scenario nonsense`, "nested-mac-learning"},
			cli.ExitFailure},
		{[]string{"lab", "up", "nested-mac-learning/nonsense"},
			[]string{`experiment nested-mac-learning has no row nonsense; it has `}, cli.ExitFailure},
		{[]string{"lab", "up", "./none.yaml"}, []string{"none.yaml"}, cli.ExitUsage},
		{[]string{"lab", "up", bad}, []string{bad + ":2:31: ", bad + ":4:21: ", bad + ":4:35: "}, cli.ExitUsage},
		{[]string{"lab", "down", "nonsense"}, []string{"heddle: there is no lab nonsense; there is none"},
			cli.ExitFailure},
		{[]string{"lab", "exec", "nonsense"}, []string{"takes a lab and a node"}, cli.ExitUsage},
		{[]string{"lab", "exec", "nonsense", "node"}, []string{"there is no lab nonsense"}, cli.ExitFailure},
		{[]string{"lab", "run", "nonsense"}, []string{`there is no experiment nonsense; there are `, "placement-paths",
			"message-size"}, cli.ExitFailure},
		{[]string{"lab", "run", "message-size", "--row", "4096"},
			[]string{`experiment message-size has no row 4096; it has `, "4098"}, cli.ExitFailure},
		{[]string{"lab", "run", "message-size", "--simulate"}, []string{"leave --simulate out"}, cli.ExitUsage},
		{[]string{"lab", "run", "placement-paths", "-o", "xml"}, []string{"table, json or yaml"}, cli.ExitUsage},
	} {
		stdout, stderr, status := c.run(k.args...)
		if status != k.of || stdout != "" {
			t.Errorf("%v: status %d, output %q, want %d and none", k.args, status, stdout, k.of)
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
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var l cmd.List
	if err := json.Unmarshal([]byte(stdout), &l); err != nil {
		t.Fatal(err)
	}
	if l.Labs == nil || len(l.Labs) != 0 || len(l.Scenarios) != len(experiment.ScenarioNames()) ||
		len(l.Experiments) != len(experiment.Names())+10 {
		t.Errorf("lab list: %s", stdout)
	}
	table, _, _ := c.run("lab", "list")
	for _, want := range append(append(experiment.Names(), experiment.ScenarioNames()...), "live-change", "failover",
		"teaming", "hostile-neighbour", "hostile-guest", "guest-adapters", "message-size", "migration",
		"port-move", "all-pairs") {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

func TestLabExecPassesTheCommandsFlagsOn(t *testing.T) {
	c := newConsole(t, &standIn{})
	// -c belongs to the command; if it were taken for a flag of heddle, the error would be about it.
	_, stderr, status := c.run("lab", "exec", "nonsense", "node", "ping", "-c", "3", "10.0.0.1")
	if status != cli.ExitFailure || !strings.Contains(stderr, "no lab nonsense") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
