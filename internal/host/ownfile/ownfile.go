package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// MakeDir makes a directory and its missing parents. For an existing one it returns an error unless it belongs to root
// or to this process's user, and nobody else may write to it. The same holds for its parent, whose owner could replace
// it; a sticky parent such as /tmp prevents that. What it makes is on the disk when it returns.
func MakeDir(path string, mode fs.FileMode) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	missing := missingDirs(path)
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	for _, dir := range missing {
		if err := SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	if err := checkDir(path, false); err != nil {
		return err
	}
	return checkDir(filepath.Dir(path), true)
}

// missingDirs are a directory and its parents as far as they are not there.
func missingDirs(path string) (missing []string) {
	for {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return missing
		}
		missing = append(missing, path)
		path = filepath.Dir(path)
	}
}

func checkDir(path string, parent bool) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%s is no directory: move it out of the way", path)
	}
	if owner, ok := foreign(fi); ok {
		return fmt.Errorf("directory %s belongs to the user with id %d, who could change what is kept in it: give it "+
			"to root (chown root %s), or choose another directory", path, owner, path)
	}
	if others := fi.Mode().Perm() & 0o022; others != 0 && !(parent && fi.Mode()&fs.ModeSticky != 0) {
		return fmt.Errorf("other users may write into directory %s (its mode is %04o): take that from them (chmod "+
			"go-w %s), or choose another directory", path, fi.Mode().Perm(), path)
	}
	return nil
}

// foreign reports whether the file belongs neither to root nor to this process's user, and returns its owner.
func foreign(fi fs.FileInfo) (owner uint32, is bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || int64(st.Uid) == int64(os.Geteuid()) {
		return 0, false
	}
	return st.Uid, true
}

// Create makes an empty file for reading and writing that only its owner can read. It replaces a file or link of the
// same name.
func Create(path string) (*os.File, error) {
	if err := unix.Unlink(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
}

// Open opens an existing file, with flags as for os.OpenFile; with os.O_CREATE it makes an empty one if it is missing.
// It refuses a link, and a file of another user.
func Open(path string, flag int) (*os.File, error) {
	// Do not wait for a file that is not a regular file, such as a pipe.
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: put the file itself there, or remove the link", path)
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: move it out of the way", path)
	}
	if err == nil {
		if owner, ok := foreign(fi); ok {
			err = fmt.Errorf("%s belongs to the user with id %d: look at what it says, then give it to root (chown "+
				"root %s) or remove it", path, owner, path)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Replace writes a whole file: a crash at any instant leaves the old or the new one. It is on disk when Replace
// returns.
func Replace(path string, content []byte) error {
	f, err := Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// Remove removes a file; one that is not there is no error. The file is gone from the disk when Remove returns: without
// that, a loss of power can bring it back.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := SyncDir(filepath.Dir(path)) // also where it was not there: an earlier removal may have been cut short
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Rename gives a file or directory another name in the same directory. It has that name on the disk when Rename
// returns.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// SyncDir makes renames and removals in a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
