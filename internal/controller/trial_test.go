package controller

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A directory in which nothing can be written is named, and one in which something can be is left as it was.
func TestS187_ADirectoryIsTried(t *testing.T) {
	dir := t.TempDir()
	if err := newTrial(dir).writes(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	gone := filepath.Join(dir, "gone")
	if err := newTrial(gone).writes(); err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("of a directory that is not there: %v", err)
	}
}

// Whoever asks for the status is answered also where a write hangs, and one write hangs, however many ask.
func TestS187_ADiskThatHangsKeepsNobody(t *testing.T) {
	goes, began := make(chan struct{}), make(chan struct{}, 8)
	d := &trial{patience: time.Millisecond, write: func() error {
		began <- struct{}{}
		<-goes
		return nil
	}}
	for range 3 {
		if err := d.writes(); err == nil || !strings.Contains(err.Error(), "a write has not ended") {
			t.Errorf("while the write hangs: %v", err)
		}
	}
	close(goes)
	d.patience = time.Hour
	if err := d.writes(); err != nil || len(began) != 1 {
		t.Errorf("when it has ended: %v, after %d writes", err, len(began))
	}
}
