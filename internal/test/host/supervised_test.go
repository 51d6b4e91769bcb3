package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heddle/internal/test/testkit"
)

// TestASupervisorWithoutSystemdKnowsWhenNotToStartTheAgentAgain: as runit's run script starts it, the agent ends with 3
// after "heddle down" and with 78 when its file has a fault. The finish script takes the service down for these alone.
func TestASupervisorWithoutSystemdKnowsWhenNotToStartTheAgentAgain(t *testing.T) {
	h := newHost(t)
	h.env = []string{"HEDDLE_SUPERVISED=yes"}
	h.start("--config", h.file("heddle.yaml", "switches: []\n"))
	h.must("down", "--yes")
	<-h.done
	if got := h.agent.ProcessState.ExitCode(); got != 3 {
		t.Errorf("after heddle down the status is %d, want 3", got)
	}
	h.agent = nil
	if _, errs, got := h.heddle("agent", "--config", h.file("wrong.yaml", "switches: 7\n")); got != 78 {
		t.Errorf("with a wrong file the status is %d, want 78\n%s", got, errs)
	}
}

// TestRunitTakesTheServiceDownWhereItIsNotToStartAgain runs the finish script with the statuses of an agent's end.
func TestRunitTakesTheServiceDownWhereItIsNotToStartAgain(t *testing.T) {
	dir := t.TempDir()
	sv := "#!/bin/sh\necho \"$@\" >" + filepath.Join(dir, "asked") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "sv"), []byte(sv), 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Tool(t, "sh")
	for status, want := range map[string]string{"3": "down .\n", "78": "down .\n", "0": "", "1": "", "-1": ""} {
		t.Run(status, func(t *testing.T) {
			asked := filepath.Join(dir, "asked")
			if err := os.RemoveAll(asked); err != nil {
				t.Fatal(err)
			}
			c := exec.Command("sh", "../../../packaging/init/runit/finish", status, "9")
			c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, err := os.ReadFile(asked)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("sv was asked for %q, want %q", got, want)
			}
		})
	}
}
