package realhost

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"heddle/internal/test/testkit"
)

// before is the commit whose programs are the version before this one. While nothing is released it is the last one
// before agent and controller were divided into parts.
const before = "bb2c06da19095e661f758d8396ed161e54724221"

// errNoHistory says that this is no checkout of git, or one without its history.
var errNoHistory = errors.New("no history of the sources, with the version before: git fetch --unshallow")

// beforePrograms are the paths of the heddle and heddle-controller of the version before, built once for all tests of
// the process.
var beforePrograms = sync.OnceValues(func() (paths [2]string, err error) {
	dir, err := os.MkdirTemp("", "heddle-before-")
	if err != nil {
		return paths, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := sources(before, dir); err != nil {
		return paths, err
	}
	for i, name := range []string{"heddle", "heddle-controller"} {
		// Without the paths of a directory that is another one each time, Go's cache knows what it has built.
		if paths[i], err = buildIn(dir, name, "-trimpath"); err != nil {
			return paths, err
		}
	}
	return paths, nil
})

// sources writes the sources of a commit into a directory.
func sources(commit, dir string) error {
	top, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	git := func(args ...string) *exec.Cmd {
		// The checkout may belong to another user than the one who tests.
		return exec.Command("git", append([]string{"-C", top, "-c", "safe.directory=" + top}, args...)...)
	}
	shallow, err := git("rev-parse", "--is-shallow-repository").Output()
	if err != nil || string(shallow) != "false\n" {
		return errNoHistory
	}
	var errs bytes.Buffer
	list := git("archive", commit)
	unpack := exec.Command("tar", "-x", "-C", dir)
	list.Stderr, unpack.Stderr = &errs, &errs
	if unpack.Stdin, err = list.StdoutPipe(); err != nil {
		return err
	}
	err = errors.Join(list.Start(), unpack.Run(), list.Wait())
	if err != nil {
		return fmt.Errorf("read the sources of commit %s: %w: %s", commit, err, errs.String())
	}
	return nil
}

// BeforePrograms are the paths of the heddle and heddle-controller of the version before. A test is skipped where the
// checkout has no history.
func BeforePrograms(t *testing.T) (heddle, controller string) {
	t.Helper()
	testkit.Tool(t, "go", "git", "tar")
	paths, err := beforePrograms()
	if errors.Is(err, errNoHistory) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return paths[0], paths[1]
}

// Before makes the next start one of the version before; Earlier makes it one of this version again.
func (h *Host) Before() { h.T.Helper(); h.binary, _ = BeforePrograms(h.T) }

// Before makes the next start one of the version before; Earlier makes it one of this version again.
func (c *Controller) Before() { c.T.Helper(); _, c.binary = BeforePrograms(c.T) }
