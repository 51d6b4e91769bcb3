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
