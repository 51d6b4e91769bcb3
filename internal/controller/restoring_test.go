package controller

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/host/ownfile"
	"heddle/internal/platform/store"
)

// Where the power goes while a snapshot is restored, the controller does not start with hosts and tokens in it that
// nobody has confirmed: it says that the restore was cut off, and the restore is repeated.
func TestS143_ARestoreThatIsCutOffIsRepeated(t *testing.T) {
	o := optionsIn(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "state.db")
	while(t, o, func(f *api.Fleet) {
		if _, err := f.CreateToken(t.Context(), api.TokenTerms{Name: "ann", Role: "admin",
			Lasts: time.Hour}); err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(file)
		if err == nil {
			_, err = f.Snapshot(t.Context(), to)
		}
		if err = errors.Join(err, to.Close()); err != nil {
			t.Fatal(err)
		}
	})
	steps := []struct {
		name string
		do   func(s *self) error
	}{
		{"before the data is moved", func(s *self) error {
			_, err := s.beginRestore(file)
			return err
		}},
		{"with the data moved", func(s *self) error {
			_, err := s.beginRestore(file)
			return err
		}},
		{"with etcd's data there", func(s *self) error {
			_, err := s.fromSnapshot(file, o)
			return err
		}},
	}
	for i, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			s, err := withoutSecret(o)
			if err == nil {
				err = step.do(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.restoring()
			if err != nil || r == nil || r.Aside == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			if i == 0 { // the marker was written, and nothing else
				if err := ownfile.Rename(r.Aside, s.file(etcdDir)); err != nil {
					t.Fatal(err)
				}
			}
			if err := refusalOf(t, o); !strings.Contains(err.Error(), "was cut off") ||
				!strings.Contains(err.Error(), "heddle-controller restore") {
				t.Errorf("it starts: %v", err)
			}
			if _, err := RestoreState(t.Context(), o, Restore{Force: true}); err == nil {
				t.Error("a part of a state was made a cluster")
			}
			out, err := RestoreState(t.Context(), o, Restore{File: file})
			if err != nil || len(out.UnconfirmedTokens) != 1 || !store.Begun(out.Aside) {
				t.Fatalf("repeated: %+v, %v", out, err)
			}
			if slices.Contains(filesOf(t, o.Dir), restoringFile) {
				t.Errorf("%s is left", restoringFile)
			}
			while(t, o, func(f *api.Fleet) {
				list, err := f.ConfirmRestored(t.Context(), api.ConfirmRestored{All: true})
				if err != nil || len(list.Confirmed) != 1 {
					t.Errorf("%+v, %v", list, err)
				}
			})
		})
	}
}

// A restore that cannot move the data from before has changed nothing, and nothing says that it is under way.
func TestARestoreThatCannotMoveTheDataIsNotUnderWay(t *testing.T) {
	s := &self{dir: t.TempDir()}
	if err := errors.Join(data(s), ownfile.Replace(s.file(restoringFile), []byte("{}"))); err != nil {
		t.Fatal(err)
	}
	if err := s.moveAside(s.file(etcdDir), filepath.Join(s.dir, "missing", "aside")); err == nil {
		t.Error("it was moved into a directory that is not there")
	}
	if left, err := restoreLeft(s); err != nil || left != "nothing is restored; kept" {
		t.Errorf("left: %s, %v", left, err)
	}
}
