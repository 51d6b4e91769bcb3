package testkit

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// debianPython is the interpreter that the package python3-scapy belongs to; another python3 in the PATH may lack it.
const debianPython = "/usr/bin/python3"

// scapyTime bounds one script; scapy takes a second to load.
const scapyTime = 60 * time.Second

// Scapy skips the test without scapy.
func Scapy(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/usr/lib/python3/dist-packages/scapy/__init__.py"); err != nil {
		missing(t, "package python3-scapy")
	}
}

// ScapyCommand is a scapy script, ready to start; it ends with the context.
func ScapyCommand(ctx context.Context, script string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, debianPython, append([]string{"-c", script}, args...)...)
}

// RunScapy runs a scapy script with that input and returns what it printed.
func RunScapy(t testing.TB, script string, input []byte, args ...string) []byte {
	t.Helper()
	Scapy(t)
	ctx, cancel := context.WithTimeout(t.Context(), scapyTime)
	defer cancel()
	c := ScapyCommand(ctx, script, args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, errs.Bytes())
	}
	return out.Bytes()
}
