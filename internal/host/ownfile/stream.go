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
	if err = Rename(f.Name(), path); err != nil { // tried again, what is left would fill the disk
		return errors.Join(err, Remove(f.Name()))
	}
	return nil
}
