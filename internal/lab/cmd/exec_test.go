package cmd

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/internal/lab"
)

// TestExec_ACommandFindsItsHostsAgent: on a node with an agent the agent's name and directory are set, whatever the
// caller has set; on others nothing is.
func TestExec_ACommandFindsItsHostsAgent(t *testing.T) {
	t.Setenv("HEDDLE_RUN_DIR", "/of/the/caller")
	t.Setenv("HEDDLE_AGENT", "caller")
	run := t.TempDir()
	r := lab.Record{Name: "l", Dir: filepath.Join(run, "lab", "l"), Nodes: []lab.Node{
		{Name: "esx1", Kind: lab.NodeHost, Namespace: "l-esx1", Agent: true},
		{Name: "vm1", Kind: lab.NodeVM, Namespace: "l-vm1"},
	}}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "lab", "l.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		node string
		want []string
	}{
		{"esx1", []string{"HEDDLE_AGENT=esx1", "HEDDLE_RUN_DIR=" + r.AgentRunDir()}},
		{"vm1", []string{"HEDDLE_AGENT=caller", "HEDDLE_RUN_DIR=/of/the/caller"}},
	} {
		t.Run(v.node, func(t *testing.T) {
			c := exec.Command("heddle", "port", "list")
			if err := (Exec{RunDir: run, Lab: "l", Node: v.node, Command: c.Args}).inNode(c); err != nil {
				t.Fatal(err)
			}
			var set []string
			for _, e := range c.Environ() {
				if strings.HasPrefix(e, "HEDDLE_RUN_DIR=") || strings.HasPrefix(e, "HEDDLE_AGENT=") {
					set = append(set, e)
				}
			}
			slices.Sort(set)
			if !slices.Equal(set, v.want) {
				t.Errorf("the command has %v, want %v", set, v.want)
			}
			if self, err := os.Executable(); err != nil || c.Path != self || c.Err != nil {
				t.Errorf("heddle is %s (%v), want this program, %s", c.Path, c.Err, self)
			}
		})
	}
}
