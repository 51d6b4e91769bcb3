package controller

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/platform/snapshots"
)

// A controller takes snapshots by its schedule, removes old ones, says how they are, and is brought back by one; the
// backup beside it is compared with what is defined now.
func TestSnapshots_AreTakenAndBringAControllerBack(t *testing.T) {
	o := optionsIn(t, t.TempDir())
	o.Snapshots = snapshots.Schedule{Dir: filepath.Join(t.TempDir(), "snapshots"), Every: time.Second, Keep: 2}
	var kept *api.SnapshotState
	while(t, o, func(f *api.Fleet) {
		if _, err := f.Define(t.Context(), api.Define{File: "f", Content: someText}); err != nil {
			t.Fatal(err)
		}
		defined := time.Now()
		for { // until both that are kept are from after the change
			s, err := f.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if kept = s.Snapshots; kept != nil && kept.Problem != "" {
				t.Fatal(kept.Problem)
			}
			if kept != nil && kept.Count == 2 && kept.Last.After(defined.Add(2*kept.Every)) {
				break
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatalf("%+v", kept)
			}
		}
		text := strings.Replace(someText, "web", "db", 1)
		if _, err := f.Define(t.Context(), api.Define{File: "f", Content: text}); err != nil {
			t.Fatal(err)
		}
		older, err := filepath.Glob(filepath.Join(o.Snapshots.Dir, "*.yaml"))
		if err != nil || len(older) == 0 {
			t.Fatalf("%v, %v", older, err)
		}
		backup, err := os.ReadFile(older[0])
		if err != nil {
			t.Fatal(err)
		}
		diff, err := f.CompareBackup(t.Context(), older[0], string(backup))
		if err != nil || len(diff.Objects) != 2 {
			t.Errorf("what is different since: %+v, %v", diff, err)
		}
	})
	if kept.Problem != "" || kept.Failures != 0 || kept.Size == 0 {
		t.Errorf("state %+v", kept)
	}
	files, err := filepath.Glob(filepath.Join(o.Snapshots.Dir, "*.db"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", file, errors.Join(err, errors.New("others may read it")))
		}
	}
	fresh := optionsIn(t, t.TempDir())
	if _, err := RestoreState(t.Context(), fresh, Restore{File: files[0],
		Secret: filepath.Join(o.Dir, secretFile)}); err != nil {
		t.Fatal(err)
	}
	while(t, fresh, func(f *api.Fleet) {
		if d, err := f.Definition(t.Context()); err != nil || !strings.Contains(d.Content, "name: web") {
			t.Errorf("%+v, %v", d, err)
		}
	})
}
