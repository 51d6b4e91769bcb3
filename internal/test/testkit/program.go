package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program builds the heddle program, without a C library so that it runs in a guest, and returns its path. It goes with
// the test.
func Program(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heddle")
	build := exec.Command("go", "build", "-o", path, "heddle/cmd/heddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build heddle: %v: %s", err, out)
	}
	return path
}
