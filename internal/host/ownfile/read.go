package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFile limits what Read reads, in bytes: the largest file is a host's state with its configuration file.
const maxFile = 256 << 20

// Read returns the content of a file, which it opens like Open.
func Read(path string) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return b, err
}

// Perm returns the permissions of a file, which are those of the file that Open opens.
func Perm(path string) (fs.FileMode, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	fi, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return fi.Mode().Perm(), nil
}
