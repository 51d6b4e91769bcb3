package health

import (
	"errors"
	"strings"
	"testing"

	"heddle/internal/api"
)

func TestS187_ADirectoryThatTakesNothingIsNamed(t *testing.T) {
	if found := Writable("/data", nil); found != nil {
		t.Errorf("where nobody knows: %v", found)
	}
	if found := Writable("/data", func() error { return nil }); len(found) != 1 || found[0].Level != api.HealthOK {
		t.Errorf("one that takes something: %v", found)
	}
	found := Writable("/data", func() error { return errors.New("read-only file system") })
	if len(found) != 1 || found[0].Level != api.HealthWrong ||
		!strings.Contains(found[0].Text, "nothing can be written in /data") ||
		!strings.Contains(found[0].Text, "read-only file system") {
		t.Errorf("one that takes nothing: %v", found)
	}
}
