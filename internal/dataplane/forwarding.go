package dataplane

import (
	"os"
	"path/filepath"
)

// Forwards reports whether the instance is attached to a device, so that it forwards frames even if its agent does not
// run. It is false if the pins cannot be read.
func Forwards(pinDir string) bool {
	pins, err := os.ReadDir(filepath.Join(pinDir, linkDir))
	return err == nil && len(pins) > 0
}
