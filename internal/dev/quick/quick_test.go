package quick

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestTheNearestPackagesComeFirst(t *testing.T) {
	all := []Package{
		{Dir: "internal/dev/layout", Tests: true}, {Dir: "internal/dev/docgen", Tests: true},
		{Dir: "internal/spec", Tests: true}, {Dir: "internal/abi"},
		{Dir: "internal/plan", Imports: []string{"internal/spec"}, Tests: true},
		{Dir: "internal/agent", Imports: []string{"internal/plan"}, Tests: true},
		{Dir: "internal/names", Imports: []string{"internal/spec"}},
		{Dir: "internal/test/host", Imports: []string{"internal/agent"}, Tests: true},
		{Dir: "internal/dataplane", Imports: []string{"internal/abi"}, Tests: true},
		{Dir: "internal/test/kerneltest", Imports: []string{"internal/dataplane"}, Tests: true},
	}
	whole := []string{"internal/dev/docgen", "internal/dev/layout"}
	for _, c := range []struct {
		what  string
		files []string
		want  []string
	}{
		{"nothing", nil, nil},
		{"a file of words", []string{"internal/spec/policy.go"},
			slices.Concat(whole, []string{"internal/spec", "internal/plan", "internal/agent"})},
		{"what a test reads", []string{"internal/agent/testdata/old/state.json"},
			slices.Concat([]string{"internal/agent"}, whole)},
		{"a file of a heavy test", []string{"internal/test/host/host_test.go"},
			slices.Concat(whole, []string{"internal/test/host"})},
		{"the kernel program", []string{"bpf/stage/guard.h"},
			slices.Concat([]string{"internal/dataplane"}, whole, []string{"internal/test/kerneltest"})},
		{"a page", []string{"docs/how-to/one-host/loops.md"}, whole},
		{"a file of no package", []string{"Makefile"}, whole},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := Choose(all, c.files); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestChangedFilesAreFound(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	write("kept")
	git("add", ".")
	git("commit", "-qm", "first")
	write("committed")
	git("add", ".")
	git("commit", "-qm", "second")
	write("new")
	for base, want := range map[string][]string{"": {"new"}, "HEAD~": {"committed", "new"}} {
		if got, err := Changed(dir, base); err != nil || !slices.Equal(got, want) {
			t.Errorf("since %q: %q, %v; want %q", base, got, err, want)
		}
	}
	if _, err := Changed(dir, "nowhere"); err == nil {
		t.Error("a commit that is not there is compared with")
	}
}
