package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The error of a command that a unit runs, as a reload does, is an error in the journal, too.
func TestS184_ErrorsOfAUnitsCommandHaveAPriority(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		t.Fatal(err)
	}
	stream := fmt.Sprintf("%d:%d", is.Dev, is.Ino)
	d := Deps{Stderr: f, Getenv: func(name string) string {
		if name == "JOURNAL_STREAM" {
			return stream
		}
		return ""
	}}
	PrintError(d, errors.New("one\ntwo"))
	d.Warn("three")
	stream = "1:2" // of something else
	PrintError(d, errors.New("four"))
	const want = "<3>heddle: one\n<3>heddle: two\n<4>heddle: warning: three\nheddle: four\n"
	if got, err := os.ReadFile(f.Name()); err != nil || string(got) != want {
		t.Errorf("%v, the journal gets\n%s\nwant\n%s", err, got, want)
	}
}
