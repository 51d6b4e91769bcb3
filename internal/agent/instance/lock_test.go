package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func take(t *testing.T, p Paths) *Lock {
	t.Helper()
	l, err := Take(p, "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func TestTake_OneAgentOfAName(t *testing.T) {
	p := Paths{Run: filepath.Join(t.TempDir(), "run"), State: filepath.Join(t.TempDir(), "state")}
	first := take(t, p)
	refused := func(why string, p Paths) error {
		t.Helper()
		_, err := Take(p, "a")
		if !errors.Is(err, ErrRunning) {
			t.Fatalf("%s: a second agent has the locks: %v", why, err)
		}
		return err
	}
	process := fmt.Sprintf("process %d", os.Getpid())
	if err := refused("the same directories", p); !strings.Contains(err.Error(), process) {
		t.Errorf("who has it is not said: %v", err)
	}
	remove(t, p.LockFile("a"))
	if err := refused("the lock was removed", p); !strings.Contains(err.Error(), process) {
		t.Errorf("who has it is not said: %v", err)
	}
	other := Paths{Run: t.TempDir(), State: p.State}
	err := refused("another run directory", other)
	var elsewhere *ElsewhereError
	if !errors.As(err, &elsewhere) || elsewhere.Run != p.Run || elsewhere.Process != os.Getpid() ||
		!strings.Contains(err.Error(), process+" with --run-dir "+p.Run) {
		t.Errorf("where it runs is not said: %v", err)
	}
	if l, err := Take(other, "b"); err != nil {
		t.Errorf("an agent of another name: %v", err)
	} else {
		l.Release()
	}
	first.Release()
	take(t, other)
}

func TestTake_TheStateRemovedUnderAnAgent(t *testing.T) {
	p := Paths{Run: t.TempDir(), State: t.TempDir()}
	take(t, p)
	if err := os.RemoveAll(p.StateDir("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(p, "a"); !errors.Is(err, ErrRunning) {
		t.Errorf("a second agent has the locks: %v", err)
	}
}

// If the holder could not be recorded, the error does not name an earlier holder.
func TestTake_NamesNobodyItDoesNotKnow(t *testing.T) {
	p := Paths{Run: t.TempDir(), State: t.TempDir()}
	take(t, p)
	if err := os.WriteFile(p.LockFile("a"), []byte("\x1b[31m"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Take(p, "a")
	if !errors.Is(err, ErrRunning) || strings.Contains(err.Error(), "\x1b") ||
		strings.Contains(err.Error(), "process") {
		t.Errorf("got %v", err)
	}
}

func TestTake_RefusesWhatOthersCanChange(t *testing.T) {
	for what, dir := range map[string]func(Paths) string{
		"run":   func(p Paths) string { return p.Run },
		"state": func(p Paths) string { return p.StateDir("a") },
	} {
		t.Run(what, func(t *testing.T) {
			p := Paths{Run: t.TempDir(), State: t.TempDir()}
			open := dir(p)
			if err := errors.Join(os.MkdirAll(open, 0o700), os.Chmod(open, 0o777)); err != nil {
				t.Fatal(err)
			}
			if _, err := Take(p, "a"); err == nil || !strings.Contains(err.Error(), "chmod go-w "+open) {
				t.Errorf("%s directory: %v", what, err)
			}
		})
	}
	p := Paths{Run: t.TempDir(), State: t.TempDir()}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600),
		os.Symlink(victim, p.LockFile("a"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(p, "a"); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a lock that is a link: %v", err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("written through a link: %q", b)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A command that was given another state directory than the agent's is told so, as long as the agent has something in
// the kernel.
func TestS168_TheStateDirectoryOfAnAgentIsKnown(t *testing.T) {
	p := Paths{Run: filepath.Join(t.TempDir(), "run"), State: t.TempDir()}
	other := Paths{Run: p.Run, State: t.TempDir()}
	l := take(t, p)
	if err := CheckState(other, "a"); err != nil {
		t.Errorf("an agent without anything in the kernel: %v", err)
	}
	if err := os.MkdirAll(p.Pins("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // while it runs, and after it was killed
		if err := CheckState(p, "a"); err != nil {
			t.Errorf("with its own directory: %v", err)
		}
		if err := CheckState(other, "a"); err == nil || !strings.Contains(err.Error(), "--state-dir "+p.State) {
			t.Errorf("with another one: %v", err)
		}
		l.Release()
	}
}
