package instance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// The directory of pinned objects belongs to one agent alone: no link leads to it, nobody else owns it or what it is
// in, and no second agent has it under another name.
func TestS116_PinsBelongToOneAgentAlone(t *testing.T) {
	testkit.Root(t)
	const nobody = 65534
	for _, row := range []struct {
		name  string
		spoil func(above, dir string) error
		says  string // "" where it is taken
	}{
		{"there already", func(_, dir string) error { return os.Mkdir(dir, 0o700) }, ""},
		{"readable by others", func(_, dir string) error { return os.Mkdir(dir, 0o755) }, ""},
		{"below a directory for all", func(above, _ string) error { return os.Chmod(above, 0o777|os.ModeSticky) }, ""},
		{"a link", func(above, dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(above, "default"), 0o700), os.Symlink("default", dir))
		}, "but a link or another file: remove it"},
		{"a file", func(_, dir string) error { return os.WriteFile(dir, nil, 0o600) }, "another file"},
		{"somebody's", func(_, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, nobody, nobody))
		}, "belongs to the user with id 65534"},
		{"in somebody's directory", func(above, _ string) error { return os.Chown(above, nobody, nobody) },
			"belongs to the user with id 65534"},
		{"in a directory that others change", func(above, _ string) error { return os.Chmod(above, 0o777) },
			"other users may write into"},
		{"another agent's", func(above, dir string) error {
			other := &Lock{}
			t.Cleanup(func() { other.pins.Close() })
			return other.takePins(dir)
		}, "another agent has its pinned objects in"},
	} {
		t.Run(row.name, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "sq")
			if err := errors.Join(os.Chmod(above, 0o700), row.spoil(above, dir)); err != nil {
				t.Fatal(err)
			}
			l := &Lock{}
			err := l.takePins(dir)
			if row.says != "" {
				if err == nil || !strings.Contains(err.Error(), row.says) {
					t.Errorf("%v, want %q", err, row.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.pins.Close()
			if fi, err := os.Lstat(dir); err != nil || fi.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", fi, err)
			}
			if err := l.takePins(dir); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
}
