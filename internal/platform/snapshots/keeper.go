package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
)

const (
	// again is when one that failed is tried again, where the next is not due earlier.
	again = time.Minute
	// looks is how often it is looked whether one is due, so that a clock that is set moves nothing for long.
	looks = time.Minute
	// spare is the part of a file system that a snapshot leaves free: etcd may be on the same one.
	spare = 20
)

// Source is what a snapshot is of.
type Source struct {
	// Database writes the whole database into a file that is there whole or not at all, and on the disk when it
	// returns.
	Database func(ctx context.Context, file string) (size int64, err error)
	// Size is how large the database is now, in bytes.
	Size func(context.Context) (int64, error)
	// Backup is what is defined, as "heddle backup export" writes it.
	Backup func(context.Context) ([]byte, error)
}

// State is how the snapshots are.
type State struct {
	Schedule
	// Last is when the newest was taken; zero for none.
	Last time.Time
	// Size is how large its database is, in bytes; 0 where this run has taken none.
	Size int64
	// Count is how many there are, Failures how many failed since the controller's start.
	Count    int
	Failures int64
	// Problem is why the last one failed; "" where it did not.
	Problem string
}

// Keeper takes snapshots.
type Keeper struct {
	Schedule
	Log *slog.Logger
	// Now is the time, Room the free and the whole size of the directory's file system; nil for those of the machine.
	Now  func() time.Time
	Room func(dir string) (free, size int64, err error)

	mu    sync.Mutex
	state State
}

// State is how the snapshots are; nil for no schedule.
func (k *Keeper) State() *State {
	if k == nil || k.Dir == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.state
	s.Schedule = k.Schedule
	return &s
}

// Check says what is wrong with a schedule.
func (s Schedule) Check() error {
	switch {
	case s.Dir == "":
		return nil
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("--snapshot-dir %s: give an absolute path", s.Dir)
	case s.Every < LeastEvery:
		return fmt.Errorf("--snapshot-every %s: give at least %s", s.Every, LeastEvery)
	case s.Keep < 1:
		return fmt.Errorf("--snapshot-keep %d: give at least 1", s.Keep)
	case s.Age < 0:
		return fmt.Errorf("--snapshot-age %s: give a time, or 0 for never", s.Age)
	}
	return nil
}

// Run takes snapshots until ctx ends.
func (k *Keeper) Run(ctx context.Context, from Source) {
	if k.Dir == "" {
		return
	}
	if k.Now == nil {
		k.Now = time.Now
	}
	if k.Room == nil {
		k.Room = RoomOf
	}
	k.sweep()
	for ctx.Err() == nil {
		wait := k.turn(ctx, from)
		select {
		case <-time.After(min(max(wait, 0), looks)):
		case <-ctx.Done():
		}
	}
}

// turn takes a snapshot if one is due, and says when to look again.
func (k *Keeper) turn(ctx context.Context, from Source) time.Duration {
	taken, err := k.taken()
	now := k.Now()
	due := k.Due(taken, now)
	if err == nil && now.Before(due) {
		return due.Sub(now)
	}
	var size int64
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		size, err = k.take(ctx, from, now)
	}
	if err == nil {
		taken, err = k.prune(now)
	}
	if ctx.Err() != nil {
		return 0
	}
	k.keep(taken, size, err)
	if err != nil {
		k.Log.Error("the snapshot by schedule failed; older ones are kept", "dir", k.Dir, "err", err)
		return min(again, k.Every)
	}
	k.Log.Info("a snapshot was taken", "file", filepath.Join(k.Dir, nameOf(now)+Database), "bytes", size)
	return k.Every
}

// keep keeps how the snapshots are.
func (k *Keeper) keep(taken []time.Time, size int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state.Problem = ""
	if err != nil {
		k.state.Problem = err.Error()
		k.state.Failures++
	}
	if size > 0 {
		k.state.Size = size
	}
	k.hold(taken)
}

// hold keeps which snapshots there are. The caller holds the lock.
func (k *Keeper) hold(taken []time.Time) {
	k.state.Count, k.state.Last = len(taken), newest(taken, k.Now())
}

// taken are when the snapshots that there are were taken, the newest first.
func (k *Keeper) taken() ([]time.Time, error) {
	entries, err := os.ReadDir(k.Dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	list := takenAt(files)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hold(list)
	return list, nil
}

// take takes one. The database comes last: where it is there, the snapshot is whole.
func (k *Keeper) take(ctx context.Context, from Source, now time.Time) (size int64, err error) {
	if err := ownfile.MakeDir(k.Dir, 0o700); err != nil {
		return 0, err
	}
	if err := k.fits(ctx, from); err != nil {
		return 0, err
	}
	text, err := from.Backup(ctx)
	if err != nil {
		return 0, fmt.Errorf("the backup of what is defined: %w", err)
	}
	name := filepath.Join(k.Dir, nameOf(now))
	if err := ownfile.Replace(name+Backup, text); err != nil {
		return 0, err
	}
	if size, err = from.Database(ctx, name+Database); err != nil {
		return 0, errors.Join(err, os.Remove(name+Backup))
	}
	return size, nil
}

// fits refuses a snapshot that would take the room that etcd needs.
func (k *Keeper) fits(ctx context.Context, from Source) error {
	need, err := from.Size(ctx)
	if err != nil {
		return fmt.Errorf("how large the database is can't be said: %w", err)
	}
	free, size, err := k.Room(k.Dir)
	if err != nil {
		return err
	}
	if free-need < size/spare {
		return fmt.Errorf("%s has %d MB free, and a snapshot of %d MB would leave less than a %dth of the file "+
			"system: make room there, keep fewer (--snapshot-keep), or give another --snapshot-dir",
			k.Dir, free>>20, need>>20, spare)
	}
	return nil
}

// prune removes what had its time, and says what is left.
func (k *Keeper) prune(now time.Time) ([]time.Time, error) {
	taken, err := k.taken()
	if err != nil {
		return nil, err
	}
	for _, at := range k.Outdated(taken, now) {
		name := filepath.Join(k.Dir, nameOf(at))
		for _, end := range []string{Database, Backup} { // without the first, what is left is no snapshot
			if gone := os.Remove(name + end); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	left, errLeft := k.taken()
	return left, errors.Join(err, errLeft)
}

// sweep removes what a controller left that was killed while it took a snapshot.
func (k *Keeper) sweep() {
	entries, _ := os.ReadDir(k.Dir) // it may not be there yet
	for _, e := range entries {
		name := e.Name()
		part := strings.HasPrefix(name, "."+prefix) ||
			strings.HasPrefix(name, prefix) && strings.HasSuffix(name, Backup+".new")
		if base, ok := strings.CutSuffix(name, Backup); ok && !part {
			_, ours := timeOf(base + Database)
			_, err := os.Lstat(filepath.Join(k.Dir, base+Database))
			part = ours && errors.Is(err, fs.ErrNotExist)
		}
		if !part || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(k.Dir, name)); err != nil {
			k.Log.Warn("what is left of a snapshot is not removed", "file", name, "err", err)
		}
	}
}

// RoomOf is how much of a directory's file system is free, and how large that is, in bytes.
func RoomOf(dir string) (free, size int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("the space in %s: %w", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}
