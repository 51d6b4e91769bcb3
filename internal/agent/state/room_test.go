package state

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestS186_AStateDirectoryThatTakesNoChangeIsNamed(t *testing.T) {
	good := unix.Statfs_t{Bsize: 4096, Bavail: 100, Files: 10, Ffree: 1}
	for _, row := range []struct {
		name string
		of   func(*unix.Statfs_t)
		want string
	}{
		{"room", func(*unix.Statfs_t) {}, ""},
		{"a file system without a number of files", func(s *unix.Statfs_t) { s.Files, s.Ffree = 0, 0 }, ""},
		{"as much as a copy needs", func(s *unix.Statfs_t) { s.Bavail = 41 }, ""},
		{"less than a copy needs", func(s *unix.Statfs_t) { s.Bavail = 40 }, "is full: 160 KiB are left, and " +
			"a change needs 164"},
		{"no file", func(s *unix.Statfs_t) { s.Ffree = 0 }, "can have no more files"},
		{"read-only", func(s *unix.Statfs_t) { s.Flags = unix.ST_RDONLY }, "is read-only"},
	} {
		t.Run(row.name, func(t *testing.T) {
			st := good
			row.of(&st)
			got := faultOf("/var/lib/heddle/default", &st, 100<<10)
			if (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
				t.Errorf("it says %q, want %q", got, row.want)
			}
		})
	}
	if got := Fault("/nowhere"); !strings.Contains(got, "can't be looked at") {
		t.Errorf("a directory that is not there: %q", got)
	}
}
