package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// fill takes all space of a file system, but so many bytes.
func fill(t *testing.T, dir string, leave int64) (filler string) {
	t.Helper()
	filler = filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	size, chunk := int64(0), make([]byte, 4096)
	for err == nil {
		var n int
		n, err = f.Write(chunk)
		size += int64(n)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size-leave), f.Close()); err != nil {
		t.Fatal(err)
	}
	return filler
}

// With its disk full nothing may begin, however often it is tried, and no half line is left; with room again the log
// goes on, and its chain has no fault, also for who opens it anew.
func TestLog_ItsDiskIsFull(t *testing.T) {
	testkit.Root(t) // for a file system of its own
	disk := t.TempDir()
	if err := unix.Mount("heddle-test", disk, "tmpfs", 0, "mode=0700,size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { testkit.Unmount(t, disk) })
	dir := filepath.Join(disk, "audit")
	// A file takes few lines, so that the disk is full both within a file and where the next one begins.
	bounds := Bounds{File: 2000, Changes: 50, Refusals: 2}
	l := opened(t, dir, bounds)
	acknowledged := 0
	for _, leave := range []int64{0, 4096, 8192} {
		begin(t, l, Entry{Who: "ann", Call: "before"})
		acknowledged++
		filler := fill(t, disk, leave)
		full := 0
		for i := 0; full < 3; i++ {
			_, err := l.Begin(Entry{Who: "ann", Call: "during", Objects: []string{strings.Repeat("x", 700)}})
			switch {
			case err == nil:
				acknowledged++
			case !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "nothing is changed"):
				t.Fatalf("with %d bytes left: %v", leave, err)
			default:
				full++
			}
			if i > 100 {
				t.Fatal("the disk is never full")
			}
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		begin(t, l, Entry{Who: "ann", Call: "after"})
		acknowledged++
	}
	for _, who := range []*Log{l, opened(t, dir, bounds)} {
		chains, err := who.Verify("")
		if err != nil || len(chains[0].Faults) > 0 || chains[0].Lines != acknowledged {
			t.Errorf("%d acknowledged, and the log is %+v, %v", acknowledged, chains[0], err)
		}
	}
}
