package agent

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/agent/instance"
)

// A file of --config that is not there is named, with what to do.
func TestStart_AConfigFileThatIsNotThereIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "heddle.yaml")
	_, err := givenTo(t.Context(), Options{Config: file, Name: "default", Log: slog.New(slog.DiscardHandler),
		Paths: instance.Paths{Run: dir, State: dir}})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--config: there is no file "+file+": ") ||
		!strings.Contains(err.Error(), "heddle check -f "+file) {
		t.Errorf("the error is %v", err)
	}
}
