package testkit

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// pyYAMLTime bounds one script.
const pyYAMLTime = 30 * time.Second

// RunPyYAML runs a script that may import yaml (PyYAML), with that input, and returns what it printed.
func RunPyYAML(t testing.TB, script string, input []byte) []byte {
	t.Helper()
	if _, err := os.Stat("/usr/lib/python3/dist-packages/yaml/__init__.py"); err != nil {
		missing(t, "package python3-yaml")
	}
	ctx, cancel := context.WithTimeout(t.Context(), pyYAMLTime)
	defer cancel()
	c := exec.CommandContext(ctx, debianPython, "-c", script)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("PyYAML: %v\n%s", err, errs.Bytes())
	}
	return out.Bytes()
}
