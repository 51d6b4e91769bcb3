package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
)

// Lock excludes a second agent with the same name or the same state. The kernel releases it when the process ends,
// however it ends.
type Lock struct {
	run   *os.File // the lock in the run directory
	state *os.File // the state directory itself, which is not removed by mistake as easily as a file
	pins  *os.File // the directory of pinned objects; nil before Mount
}

// ErrRunning means that an agent of that name is running.
var ErrRunning = errors.New("an agent of this name is running")

// ElsewhereError is ErrRunning for an agent with another run directory, where commands reach it.
type ElsewhereError struct {
	Name, Run string
	Process   int
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("%v: %s keeps its state in the same directory; it is process %d with --run-dir %s; stop it "+
		"first, or give this one another --name or --state-dir",
		ErrRunning, e.Name, e.Process, e.Run)
}

// Is makes errors.Is(e, ErrRunning) true.
func (e *ElsewhereError) Is(target error) bool { return target == ErrRunning }

// Take takes the locks of the agent of that name, in its run directory and on its state. It returns ErrRunning if an
// agent holds either.
func Take(p Paths, name string) (*Lock, error) {
	if err := ownfile.MakeDir(p.Run, 0o755); err != nil {
		return nil, fmt.Errorf("open the run directory: %w", err)
	}
	if err := ownfile.MakeDir(p.StateDir(name), 0o700); err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	run, err := lockFile(p.LockFile(name), os.O_RDWR|os.O_CREATE)
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, running(p.LockFile(name), p, name)
		}
		return nil, fmt.Errorf("lock %s: %w", p.LockFile(name), err)
	}
	state, err := lockFile(p.StateDir(name), os.O_RDONLY)
	if err != nil {
		run.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, running(p.holderFile(name), p, name)
		case errors.Is(err, os.ErrNotExist): // "heddle down --purge" removed it in between
			return Take(p, name)
		}
		return nil, fmt.Errorf("lock %s: %w", p.StateDir(name), err)
	}
	sayWho(p, name, run)
	return &Lock{run: run, state: state}, nil
}

// lockFile locks the file or directory at path, and checks that it is still at path when it is locked: it may be
// removed and made again in between, as "heddle down" does.
func lockFile(path string, flag int) (*os.File, error) {
	for {
		f, err := openForLock(path, flag)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			return nil, err
		}
		if sameFile(f, path) {
			return f, nil
		}
		f.Close()
	}
}

func openForLock(path string, flag int) (*os.File, error) {
	if flag == os.O_RDONLY {
		return os.OpenFile(path, flag|unix.O_DIRECTORY, 0)
	}
	return ownfile.Open(path, flag)
}

func sameFile(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

// holderFile returns the file that names the holder of the lock on the state.
func (p Paths) holderFile(name string) string { return filepath.Join(p.StateDir(name), "holder") }

// sayWho writes the process and the run directory of the holder to the holder file. Only the error message of running
// uses it: no name is better than the name of another process.
func sayWho(p Paths, name string, run *os.File) {
	dir := absolute(p.Run)
	text := fmt.Sprintf("%d %s\n", os.Getpid(), dir)
	if err := run.Truncate(0); err == nil {
		_, _ = run.WriteString(text + absolute(p.StateDir(name)) + "\n")
	}
	if err := ownfile.Replace(p.holderFile(name), []byte(text)); err != nil {
		_ = os.Remove(p.holderFile(name))
	}
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// CheckState returns an error if the agent whose objects are in the kernel keeps its state in another directory: by the
// one given, nobody knows what it has.
func CheckState(p Paths, name string) error {
	if _, err := os.Lstat(p.Pins(name)); err != nil {
		return nil // it has nothing there
	}
	b, err := ownfile.Read(p.LockFile(name))
	if err != nil {
		return nil // of a program before this one, or removed: what is known counts
	}
	_, rest, _ := strings.Cut(string(b), "\n")
	keeps, given := strings.TrimSpace(rest), absolute(p.StateDir(name))
	if keeps == "" || keeps == given {
		return nil
	}
	return fmt.Errorf("agent %s keeps its state in %s, and %s was given: what its switches have is known there alone; "+
		"use --state-dir %s (or HEDDLE_STATE_DIR); nothing was changed", name, keeps, given, filepath.Dir(keeps))
}

// running returns the error for a lock that is held, with the holder that the file names.
func running(holder string, p Paths, name string) error {
	b, _ := ownfile.Read(holder)
	who, _, _ := strings.Cut(string(b), "\n")
	process, dir, _ := strings.Cut(strings.TrimSpace(who), " ")
	pid, err := strconv.Atoi(process)
	if err != nil { // the holder has just begun, or its disk is full
		return fmt.Errorf("%w: %s; stop it first, or give this one another --name", ErrRunning, name)
	}
	if here, err := filepath.Abs(p.Run); err == nil && dir != "" && dir != here {
		return &ElsewhereError{Name: name, Run: dir, Process: pid}
	}
	return fmt.Errorf("%w: %s, process %d; stop it first, or give this one another --name", ErrRunning, name, pid)
}

// Release releases the locks, so that another agent of the name can start.
func (l *Lock) Release() {
	if l.pins != nil {
		l.pins.Close()
	}
	l.state.Close()
	l.run.Close()
}
