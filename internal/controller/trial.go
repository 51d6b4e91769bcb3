package controller

import (
	"errors"
	"os"
	"sync"
	"time"

	"heddle/internal/host/ownfile"
)

// trialFile is written and removed to find out whether anything can be written.
const trialFile = ".trial"

// trialFor is for how long it counts what came of that, whoever asks.
const trialFor = time.Second

// trial finds out whether a controller's directory can be written. The file system does not say so by itself: one that
// has gone read-only after a fault of its medium seems to be as before.
type trial struct {
	s *self

	mu  sync.Mutex
	at  time.Time
	err error
}

// writes returns why nothing can be written.
func (t *trial) writes() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() || time.Since(t.at) > trialFor {
		t.err = t.write()
		t.at = time.Now()
	}
	return t.err
}

func (t *trial) write() error {
	f, err := ownfile.Create(t.s.file(trialFile))
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("written, and removed"))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
