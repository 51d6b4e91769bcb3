package snapshots

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stand is a keeper with a clock that the test sets, and a source that writes what it is told.
type stand struct {
	*Keeper
	t      *testing.T
	now    time.Time
	free   int64
	failed error
}

func newStand(t *testing.T, s Schedule) *stand {
	s.Dir = filepath.Join(t.TempDir(), "snapshots")
	st := &stand{t: t, now: noon, free: 1 << 40}
	st.Keeper = &Keeper{Schedule: s, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return st.now },
		Room: func(string) (int64, int64, error) { return st.free, 1 << 40, nil }}
	return st
}

func (s *stand) source() Source {
	return Source{
		Database: func(_ context.Context, file string) (int64, error) {
			if s.failed != nil {
				return 0, s.failed
			}
			return 8, os.WriteFile(file, []byte("database"), 0o600)
		},
		Size:   func(context.Context) (int64, error) { return 1 << 30, nil },
		Backup: func(context.Context) ([]byte, error) { return []byte("switches: []\n"), nil },
	}
}

// files are what is in the directory.
func (s *stand) files() string {
	list, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestKeeper_TakesOneWhenItIsDueAndKeepsSome(t *testing.T) {
	s := newStand(t, Schedule{Every: time.Hour, Keep: 2})
	for i := range 4 {
		if wait := s.turn(t.Context(), s.source()); wait != time.Hour {
			t.Fatalf("turn %d: the next one in %s", i, wait)
		}
		s.now = s.now.Add(20 * time.Minute)
		if wait := s.turn(t.Context(), s.source()); wait != 40*time.Minute {
			t.Fatalf("turn %d: the next one in %s after 20 minutes", i, wait)
		}
		s.now = s.now.Add(40 * time.Minute)
	}
	want := "heddle-20261124T140000Z.db heddle-20261124T140000Z.yaml heddle-20261124T150000Z.db " +
		"heddle-20261124T150000Z.yaml"
	if got := s.files(); got != want {
		t.Errorf("files %s", got)
	}
	if st := s.State(); st.Count != 2 || !st.Last.Equal(noon.Add(3*time.Hour)) || st.Problem != "" || st.Size != 8 {
		t.Errorf("state %+v", st)
	}
	other := newStand(t, s.Schedule)
	other.Dir, other.now = s.Dir, noon.Add(3*time.Hour+10*time.Minute)
	if wait := other.turn(t.Context(), other.source()); wait != 50*time.Minute {
		t.Errorf("after a restart, the next one comes in %s", wait)
	}
	if st := other.State(); st.Count != 2 || !st.Last.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("state after a restart %+v", st)
	}
}

// Whatever fails, what was there stays, nothing half is left, and it is tried again.
func TestKeeper_AFailureLeavesTheOldOnes(t *testing.T) {
	for name, fail := range map[string]func(*stand){
		"no room":          func(s *stand) { s.free = 1 << 30 },
		"the disk is full": func(s *stand) { s.failed = errors.New("no space left on device") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, Schedule{Every: time.Hour, Keep: 1})
			s.turn(t.Context(), s.source())
			before := s.files()
			s.now = s.now.Add(2 * time.Hour)
			fail(s)
			if wait := s.turn(t.Context(), s.source()); wait != again {
				t.Errorf("it is tried again in %s", wait)
			}
			if got := s.files(); got != before {
				t.Errorf("files %s, before %s", got, before)
			}
			st := s.State()
			if st.Failures != 1 || st.Problem == "" || !st.Last.Equal(noon) || st.Count != 1 {
				t.Errorf("state %+v", st)
			}
			s.free, s.failed = 1<<40, nil
			s.turn(t.Context(), s.source())
			if st := s.State(); st.Problem != "" || !st.Last.Equal(s.now) || st.Count != 1 {
				t.Errorf("state once there is room %+v", st)
			}
		})
	}
}

func TestKeeper_RemovesWhatAKilledOneLeft(t *testing.T) {
	s := newStand(t, Schedule{Every: time.Hour, Keep: 3})
	s.turn(t.Context(), s.source())
	before := s.files()
	for _, name := range []string{".heddle-20261124T130000Z.db.77", "heddle-20261124T130000Z.yaml",
		"heddle-20261124T130000Z.yaml.new"} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	others := filepath.Join(s.Dir, "mine.yaml")
	if err := os.WriteFile(others, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sweep()
	if got := s.files(); got != before+" mine.yaml" {
		t.Errorf("files %s", got)
	}
}

func TestSchedule_Check(t *testing.T) {
	good := Schedule{Dir: "/var/backups/heddle", Every: DefaultEvery, Keep: DefaultKeep}
	if err := errors.Join(good.Check(), Schedule{}.Check()); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Schedule){
		"relative": func(s *Schedule) { s.Dir = "x" }, "too often": func(s *Schedule) { s.Every = time.Millisecond },
		"none kept": func(s *Schedule) { s.Keep = 0 }, "negative": func(s *Schedule) { s.Age = -1 },
	} {
		bad := good
		change(&bad)
		if bad.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
