package leaks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// pretended is a test that is watched, and ends on request.
type pretended struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (p *pretended) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *pretended) Failed() bool     { return false }
func (p *pretended) Errorf(format string, args ...any) {
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

func (p *pretended) end() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}

// watched is a process of its own, and a pretended test in it.
func watched(t *testing.T) (*process, *pretended, *Objects) {
	t.Helper()
	testkit.Never(t)
	p, x, o := &process{patience: 100 * time.Millisecond}, &pretended{TB: t}, &Objects{found: map[object]string{}}
	p.watch(x, o)
	return p, x, o
}

// says holds that the pretended test ended with one error that has all the words, or with none.
func says(t *testing.T, x *pretended, words ...string) {
	t.Helper()
	x.end()
	if len(words) == 0 {
		if len(x.errors) > 0 {
			t.Errorf("nothing was left, and yet: %q", x.errors)
		}
		return
	}
	if len(x.errors) != 1 {
		t.Fatalf("%d errors: %q", len(x.errors), x.errors)
	}
	for _, w := range words {
		if !strings.Contains(x.errors[0], w) {
			t.Errorf("%q lacks %q", x.errors[0], w)
		}
	}
}

func TestAFileThatStaysOpenIsListed(t *testing.T) {
	_, x, _ := watched(t)
	path := filepath.Join(t.TempDir(), "stays")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	says(t, x, t.Name()+" leaves in the process", fmt.Sprintf("file descriptor %d → %s", f.Fd(), path))
}

func TestWhatACleanupClosesIsNoLeak(t *testing.T) {
	_, x, _ := watched(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "goes"))
	if err != nil {
		t.Fatal(err)
	}
	x.Cleanup(func() { f.Close() })
	says(t, x)
}

func TestAGoroutineThatGoesOnIsListed(t *testing.T) {
	_, x, _ := watched(t)
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	says(t, x, "goroutine", "leaks.TestAGoroutineThatGoesOnIsListed")
}

// A descriptor is nobody's while another test runs: the last one to end reports it.
func TestTestsAtTheSameTimeAreJudgedTogether(t *testing.T) {
	p, first, _ := watched(t)
	second := &pretended{TB: t}
	p.watch(second, &Objects{})
	f, err := os.Create(filepath.Join(t.TempDir(), "stays"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	says(t, first)
	says(t, second, "stays", t.Name()+", "+t.Name())
}

func table(t *testing.T) *ebpf.Map {
	t.Helper()
	testkit.Root(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "left_here", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestATableOfAProcessThatStaysIsListed(t *testing.T) {
	m := table(t)
	_, x, o := watched(t) // which has the descriptor already: only the table counts
	o.Process(t, os.Getpid())
	says(t, x, "leaves in the kernel", "left_here", "table ", fmt.Sprintf("of process %d", os.Getpid()))
	_, x, o = watched(t)
	o.Process(t, os.Getpid())
	m.Close()
	says(t, x)
}

func TestATableThatStaysPinnedIsListed(t *testing.T) {
	m := table(t)
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testkit.Unmount(t, dir) })
	path := filepath.Join(dir, "deep", "pin")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.Pin(path); err != nil {
		t.Fatal(err)
	}
	m.Close()
	_, x, o := watched(t)
	o.Pins(t, dir)
	says(t, x, "left_here", "pinned at "+path)
	_, x, o = watched(t)
	o.Pins(t, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	says(t, x)
}

// A table that nobody has any more is the kernel's to free; one that a process has open is held.
func TestATableThatNobodyHasIsNotHeld(t *testing.T) {
	testkit.Root(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	x := object{"table", uint64(id)}
	if !x.held("") {
		t.Error("a table that this process has open is not held")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if x.held("of a process") {
		t.Error("a table that nobody has is held")
	}
}
