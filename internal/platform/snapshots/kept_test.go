package snapshots

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// hours are snapshots of so many hours ago.
func hours(ago ...int) (list []time.Time) {
	for _, h := range ago {
		list = append(list, noon.Add(-time.Duration(h)*time.Hour))
	}
	return list
}

func TestSchedule_TheNextIsDueByTheNewest(t *testing.T) {
	s := Schedule{Every: 6 * time.Hour}
	for name, c := range map[string]struct {
		taken []time.Time
		want  time.Duration
	}{
		"none":                          {nil, 0},
		"a new one":                     {hours(2, 8), 4 * time.Hour},
		"an old one, as after a stop":   {hours(20), -14 * time.Hour},
		"one of a clock that was ahead": {hours(-100, 5), time.Hour},
		"only such a one":               {hours(-100), 0},
	} {
		if got := s.Due(c.taken, noon).Sub(noon); got != c.want {
			t.Errorf("%s: due in %s, want %s", name, got, c.want)
		}
	}
}

func TestSchedule_OldOnesGoByNumberAndByAge(t *testing.T) {
	taken := hours(1, 7, 13, 19)
	for _, c := range []struct {
		s    Schedule
		want int
	}{
		{Schedule{Keep: 10}, 0}, {Schedule{Keep: 4}, 0}, {Schedule{Keep: 3}, 1}, {Schedule{Keep: 1}, 3},
		{Schedule{Keep: 10, Age: 18 * time.Hour}, 1}, {Schedule{Keep: 10, Age: 13 * time.Hour}, 1},
		{Schedule{Keep: 2, Age: 18 * time.Hour}, 2},
		{Schedule{Keep: 10, Age: time.Minute}, 3}, // the newest stays
	} {
		gone := c.s.Outdated(taken, noon)
		if len(gone) != c.want || c.want > 0 && gone[c.want-1] != taken[3] {
			t.Errorf("%+v: %v", c.s, gone)
		}
	}
}

func TestTheTimeOfASnapshot_IsKnownOfItsOwnFilesAlone(t *testing.T) {
	for _, name := range []string{"heddle.db", "heddle-.db", "heddle-20261124T120000Z.yaml",
		"heddle-20261332T120000Z.db",
		".heddle-20261124T120000Z.db.123", "other-20261124T120000Z.db", "heddle-20261124T120000Z.db.old"} {
		if at, ok := timeOf(name); ok {
			t.Errorf("%s is of %s", name, at)
		}
	}
	if at, ok := timeOf(nameOf(noon) + Database); !ok || !at.Equal(noon) {
		t.Errorf("%s, %v", at, ok)
	}
}
