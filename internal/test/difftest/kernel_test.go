package difftest

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

// kernel loads the recording build for a test.
func kernel(t *testing.T) *Kernel {
	t.Helper()
	testkit.Root(t)
	k, err := NewKernel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// TestKernelDoesWhatTheModelSays is the differential test: a few seconds of random cases, other ones each day.
func TestKernelDoesWhatTheModelSays(t *testing.T) {
	b := &Bench{Want: Reference(), Got: kernel(t)}
	seed := uint64(time.Now().Unix()/86400) * 1_000_000
	cases, frames, end := 0, 0, time.Now().Add(4*time.Second)
	for ; time.Now().Before(end); cases++ {
		n, err := b.One(seed + uint64(cases))
		frames += n
		report(t, err)
	}
	t.Logf("%d frames of %d cases from seed %d, no mismatch", frames, cases, seed)
}

// TestRegressions replays every case that once failed, and reports all that do again.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(regressions, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no regression cases: %v", err)
	}
	b := &Bench{Want: Reference(), Got: kernel(t)}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			c, err := Load(f)
			if err != nil {
				t.Fatal(err)
			}
			if _, m, err := b.Play(c); err != nil {
				t.Error(err)
			} else if m != nil {
				t.Errorf("after step %d: %s", m.Step, m.What)
			}
		})
	}
}

// report fails the test for an error; a mismatch is written where somebody can make a regression case of it.
func report(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	path, saveErr := f.Keep(failures)
	if saveErr != nil {
		t.Error(saveErr)
	}
	t.Fatalf("%v\nwritten to %s: once it is fixed, move the file to %s", f, path, regressions)
}
