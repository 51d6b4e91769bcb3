package dataplane

import (
	"os"
	"path/filepath"
)

// Forwards says whether the instance is attached to a device, so that it forwards frames whether its agent runs or not.
// Where the pins cannot be read it is not known, and false.
func Forwards(pinDir string) bool {
	pins, err := os.ReadDir(filepath.Join(pinDir, linkDir))
	return err == nil && len(pins) > 0
}
