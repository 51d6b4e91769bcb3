package ownfile

import (
	"fmt"
	"io"
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
