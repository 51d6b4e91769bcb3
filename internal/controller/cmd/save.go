package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
)

// save writes a file that is there whole or not at all, readable by its owner alone. It is written beside, under
// another name: what a command left that was killed meanwhile is removed.
func save(name string, write func(io.Writer) (int64, error)) (size int64, err error) {
	f, err := begin(name)
	if err != nil {
		return 0, unwritten(name, err)
	}
	defer os.Remove(f.Name())
	removeLeft(name, f)
	size, err = write(f)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = ownfile.Rename(f.Name(), name) // while it is locked: nobody takes it for one that was left
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, unwritten(name, err)
	}
	return size, nil
}

// begin makes the file beside, and locks it for as long as it is open: the kernel unlocks it whatever ends the process.
func begin(name string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(name), beside(name)+"*")
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isThere(f) {
			return f, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(err, os.Remove(f.Name()))
		} // another command has taken it for one that was left, and removes it
	}
}

// beside is what the names of files begin with that are written before they are given a name.
func beside(name string) string { return "." + filepath.Base(name) + "." }

// isThere reports whether an open file still has its name.
func isThere(f *os.File) bool {
	mine, err := f.Stat()
	named, errNamed := os.Stat(f.Name())
	return err == nil && errNamed == nil && os.SameFile(mine, named)
}

// removeLeft removes the files that others began before this one and will not end: nobody holds their locks. What can't
// be removed stays, and is no fault of the file that is written now.
func removeLeft(name string, mine *os.File) {
	own, err := mine.Stat()
	if err != nil {
		return
	}
	dir := filepath.Dir(name)
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		number, is := strings.CutPrefix(e.Name(), beside(name))
		if !is || number == "" || strings.Trim(number, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && !os.SameFile(info, own) {
			removeUnlocked(filepath.Join(dir, e.Name()), own.ModTime())
		}
	}
}

// removeUnlocked removes a file that was last written before then, unless somebody has it locked.
func removeUnlocked(path string, then time.Time) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.ModTime().After(then) && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.Remove(path)
	}
}

// unwritten is the error of a file that could not be written, by the name that its user knows.
func unwritten(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s is not written: %s: %w", name, filepath.Dir(name), path.Err)
	}
	return fmt.Errorf("%s is not written: %w", name, err)
}
