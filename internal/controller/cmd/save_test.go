package cmd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that can't be written is named as its user named it, with the reason, and nothing is left of it.
func TestSave_AFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	full := func(w io.Writer) (int64, error) {
		_, err := io.WriteString(w, "half")
		return 4, errors.Join(err, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	}
	for _, c := range []struct {
		name, file, why string
		write           func(io.Writer) (int64, error)
	}{
		{"no directory", filepath.Join(dir, "none", "heddle.db"), "no such file or directory", full},
		{"a full disk", filepath.Join(dir, "heddle.db"), "no space left on device", full},
		{"an answer that ended", filepath.Join(dir, "heddle.db"), "the controller ended",
			func(io.Writer) (int64, error) { return 0, errors.New("the controller ended") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := save(c.file, c.write)
			if err == nil || !strings.HasPrefix(err.Error(), c.file+" is not written: ") ||
				!strings.Contains(err.Error(), c.why) {
				t.Errorf("the error is %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
}

// What a command left that was killed is removed by the next one, and neither what another is writing nor other files.
func TestSave_RemovesWhatAKilledCommandLeft(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.db")
	for _, other := range []string{".x.db.123", ".x.db.swp", ".x.db.", ".y.db.123"} {
		if err := os.WriteFile(filepath.Join(dir, other), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outer := func(w io.Writer) (int64, error) { // another one begins and ends while this one is under way
		if _, err := save(name, func(w io.Writer) (int64, error) {
			n, err := io.WriteString(w, "inner")
			return int64(n), err
		}); err != nil {
			t.Error(err)
		}
		n, err := io.WriteString(w, "outer")
		return int64(n), err
	}
	if size, err := save(name, outer); err != nil || size != 5 {
		t.Fatal(size, err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "outer" {
		t.Errorf("the file has %q, %v", got, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != ".x.db. .x.db.swp .y.db.123 x.db" {
		t.Errorf("there is %s", got)
	}
}
