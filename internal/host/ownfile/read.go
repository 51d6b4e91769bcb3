package ownfile

import (
	"fmt"
	"io"
	"os"
)

// maxFile bounds what Read takes in, in bytes: a host's state with its configuration file is the largest.
const maxFile = 256 << 20

// Read is the content of a file as Open opens it.
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
