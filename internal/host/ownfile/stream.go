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
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}
