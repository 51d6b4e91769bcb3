package snapshots

import (
	"slices"
	"strings"
	"time"
)

// Schedule says when snapshots are taken, and which are kept.
type Schedule struct {
	// Dir is where they are; "" for no schedule.
	Dir string
	// Every is the time from one to the next: at least LeastEvery.
	Every time.Duration
	// Keep is how many are kept at most: at least 1.
	Keep int
	// Age is after what time one is removed, but the newest; 0 for never.
	Age time.Duration
}

// Defaults of a schedule, and how often snapshots are taken at most.
const (
	DefaultEvery = 6 * time.Hour
	DefaultKeep  = 28
	LeastEvery   = time.Second
)

// The names of the files.
const (
	prefix     = "heddle-"
	timeFormat = "20060102T150405Z"
	// Database and Backup are how the two files of a snapshot end.
	Database = ".db"
	Backup   = ".yaml"
)

// nameOf is that of a snapshot that was taken then, without the end.
func nameOf(at time.Time) string { return prefix + at.UTC().Format(timeFormat) }

// timeOf is when a snapshot was taken, by its name; ok is false for a file that is none.
func timeOf(file string) (at time.Time, ok bool) {
	name, found := strings.CutSuffix(file, Database)
	if !found || !strings.HasPrefix(name, prefix) {
		return at, false
	}
	at, err := time.Parse(timeFormat, name[len(prefix):])
	return at, err == nil && name == nameOf(at)
}

// takenAt are when the snapshots among these files were taken, the newest first.
func takenAt(files []string) (list []time.Time) {
	for _, f := range files {
		if at, ok := timeOf(f); ok {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b time.Time) int { return b.Compare(a) })
	return list
}

// Due is when the next one is to be taken. taken are the times of those that there are, the newest first. One of the
// future, by a clock that was ahead, counts for nothing.
func (s Schedule) Due(taken []time.Time, now time.Time) time.Time {
	if last := newest(taken, now); !last.IsZero() {
		return last.Add(s.Every)
	}
	return now
}

// newest is when the newest one was taken that is not of the future; zero for none.
func newest(taken []time.Time, now time.Time) time.Time {
	for _, at := range taken {
		if !at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// Outdated are those that are to be removed of what there is, the newest first: beyond the number, or too old. The
// newest stays in any case.
func (s Schedule) Outdated(taken []time.Time, now time.Time) (gone []time.Time) {
	for i, at := range taken {
		if i > 0 && (i >= s.Keep || s.Age > 0 && now.Sub(at) > s.Age) {
			gone = append(gone, at)
		}
	}
	return gone
}
