package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// The last value of a host counts, however the file that has it ends.
func TestHeddlePull_ReadsALastLineWithoutItsEnd(t *testing.T) {
	testkit.Tool(t, "sh")
	script, err := filepath.Abs("gitops/heddle-pull")
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []string{"uplink1=eno1\n", "uplink1=eno1", "# x\nother=1\nuplink1=eno1",
		"uplink1=eno1\n\n"} {
		t.Run(values, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"hosts/h1.env": values, "bin/heddle": "#!/bin/sh\nexit 0\n",
				"switch.yaml": "switches: [{name: lab, uplinks: [{name: up, device: \"@uplink1@\"}]}]\n"} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command("sh", script, dir)
			file := filepath.Join(dir, "heddle.yaml")
			c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "HEDDLE_PULL_HOST=h1",
				"HEDDLE_FILE="+file)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), `device: "eno1"`) {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}
