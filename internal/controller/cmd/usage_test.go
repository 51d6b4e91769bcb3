package cmd

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A command line that is wrong says what the command takes, and has the exit status of such faults; a controller that
// is not there is named with what can be done here.
func TestFaultsOfTheCommandLine(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "api.sock")
	for _, c := range []struct {
		name, line string
		status     int
		want       []string
	}{
		{"no argument", "join", exitUsage, []string{"heddle-controller join takes HOST:PORT; 0 given", "join --help"}},
		{"too many", "remove a b", exitUsage, []string{"takes CONTROLLER; 2 given"}},
		{"one too many", "list a", exitUsage, []string{"takes no argument; 1 given"}},
		{"an unknown flag", "list --nosuch", exitUsage, []string{"--nosuch", "heddle-controller list --help"}},
		{"a wrong value", "token --lasts x", exitUsage, []string{"--lasts", "heddle-controller token --help"}},
		{"no such command", "lst", exitUsage, []string{"lst", "heddle-controller --help"}},
		{"nobody there", "list --socket " + nowhere, exitFailure, []string{"no controller answers at " + nowhere,
			"--socket"}},
		{"nobody's status", "status --socket " + nowhere, exitFailure, []string{"no controller answers at " + nowhere,
			"--socket"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := New(io.Discard, "", nil)
			root.SetOut(io.Discard)
			root.SetArgs(strings.Fields(c.line))
			err := root.ExecuteContext(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			if status := statusOf(err); status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "--controller") {
				t.Errorf("%q names a flag that is not here", err)
			}
		})
	}
}
