package keystore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heddle/internal/identity"
)

// A later start has a higher number, whatever the clock shows and whatever was kept.
func TestS79_ALaterStartHasAHigherNumber(t *testing.T) {
	s, dir := newIssuer(t), t.TempDir()
	d, i := open(t, dir), s.identity(s.must(identity.NewKey()))
	now, last := time.Now().Add(time.Hour), uint64(0)
	for _, c := range []struct {
		name  string
		clock time.Time
		kept  string // what is in the file before the start; "" leaves it
	}{
		{"first", now, ""},
		{"at the same instant", now, ""},
		{"the clock was put back", now.Add(-time.Hour), ""},
		{"the clock is not set", time.Unix(0, 0), ""},
		{"before 1970", time.Unix(-5, 0), ""},
		{"the disk is that of another day", now.Add(time.Minute), "17\n"},
		{"the file is damaged", now.Add(2 * time.Minute), "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.kept != "" {
				if err := os.WriteFile(filepath.Join(dir, "begun"), []byte(c.kept), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n, err := open(t, dir).Begin(i, c.clock)
			if err != nil || n <= last {
				t.Errorf("%d after %d, %v", n, last, err)
			}
			last = n
		})
	}
	if err := d.Forget(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left after the machine has left its cluster: %v, %v", left, err)
	}
	if n, err := d.Begin(i, time.Unix(0, 0)); err != nil || n != uint64(i.Certificate.NotBefore.UnixMilli()) {
		t.Errorf("without a clock and a number: %d, %v", n, err)
	}
	d.disk.replace = func(string, []byte) error { return os.ErrPermission }
	if n, err := d.Begin(i, now); err == nil || n != 0 {
		t.Errorf("the disk takes nothing: %d, %v", n, err)
	}
}
