package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"heddle/internal/lab/netns"
)

// RequireAll is the environment variable under which a missing requirement fails a test instead of skipping it; `make
// test` sets it when run as root, so that skips cannot rot.
const RequireAll = "HEDDLE_REQUIRE_ALL"

// missing skips the test with a line that `make test` counts, or fails it where everything is required.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(RequireAll) != "" {
		t.Fatalf("missing requirement: %s", what)
	}
	t.Skipf("missing requirement: %s", what)
}

// Missing skips the test, visibly, because something it needs cannot be had here: what names it and why.
func Missing(t testing.TB, what string) {
	t.Helper()
	missing(t, what)
}

// Root skips the test without root: it loads programs into the kernel or makes network namespaces.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "root")
	}
}

// Tool skips the test when a program it drives is not installed.
func Tool(t testing.TB, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			missing(t, "program "+n)
		}
	}
}

var count atomic.Uint64

// NS makes a throw-away namespace that goes with the test. Needs root.
func NS(t testing.TB, hint string) *netns.NS {
	t.Helper()
	Root(t)
	n, err := netns.New(fmt.Sprintf("ht%d-%d-%s", os.Getpid()%100000, count.Add(1), strings.ToLower(hint)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Remove(t, "the namespace "+n.Name, n.Delete) })
	return n
}
