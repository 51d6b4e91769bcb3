package proposals

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/cmd/heddle/features"
	"heddle/internal/cli"
	"heddle/internal/cli/tree"
	"heddle/internal/test/testkit"
)

// config is what the files are that commands apply.
const config = "switches: [{name: lab, portGroups: [{name: web}]}]\n"

// Try fails the test where a command line does not work as it is printed. There is no agent, so that a command of
// heddle that is right gets as far as to say that, and one that is not is a usage error. files are the configurations
// that the commands may name; of commands of other programs the shell's part alone is tried.
func Try(t *testing.T, lines []string, files ...string) {
	t.Helper()
	testkit.Tool(t, "sh")
	t.Chdir(t.TempDir())
	for _, file := range files {
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tried := map[string]bool{}
	for _, line := range lines {
		if tried[line] {
			continue
		}
		tried[line] = true
		if err := try(t.Context(), line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// try runs one command line.
func try(ctx context.Context, line string) error {
	var said bytes.Buffer
	split := exec.CommandContext(ctx, "sh", "-c", "printf '%s\\n' "+line)
	split.Stderr = &said
	out, err := split.Output()
	if err != nil {
		return fmt.Errorf("no shell reads it: %w: %s", err, said.String())
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if words[0] != "heddle" {
		return nil
	}
	none, err := filepath.Abs("no-agent")
	if err != nil {
		return err
	}
	said.Reset()
	status := tree.Run(ctx, cli.Deps{Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said,
		Getenv: func(name string) string { return map[string]string{"HEDDLE_RUN_DIR": none}[name] }}, words[1:],
		features.All()...)
	if status != cli.ExitFailure || !strings.Contains(said.String(), "no agent is running") {
		return fmt.Errorf("status %d, and not for want of an agent: %s", status, said.String())
	}
	return nil
}
