package ownfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Stream writes a whole file that is too large to be kept in memory, readable by its owner alone: a crash at any
// instant leaves the old or the new one. It is on disk when Stream returns.
func Stream(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, Remove(f.Name())) // tried again, it would fill the disk
	}
	return SyncDir(filepath.Dir(path))
}
