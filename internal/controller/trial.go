package controller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"heddle/internal/host/ownfile"
)

// trialFile is written and removed to find out whether anything can be written.
const trialFile = ".trial"

const (
	// trialFor is for how long it counts what came of that, whoever asks.
	trialFor = time.Second
	// trialTime is how long whoever asks waits for it.
	trialTime = 2 * time.Second
)

// trial finds out whether a controller's directory can be written. The file system does not say so by itself: one that
// has gone read-only after a fault of its medium seems to be as before.
type trial struct {
	write    func() error
	patience time.Duration // how long whoever asks waits

	mu    sync.Mutex
	at    time.Time
	err   error
	began time.Time     // when the write that is under way began
	ended chan struct{} // closed when that ends; nil while none is under way
}

// writes returns why nothing can be written. A write that does not end, as on a disk that hangs, keeps nobody for
// longer than patience, and no second one is begun beside it.
func (t *trial) writes() error {
	t.mu.Lock()
	if !t.at.IsZero() && time.Since(t.at) <= trialFor {
		defer t.mu.Unlock()
		return t.err
	}
	if t.ended == nil {
		t.began, t.ended = time.Now(), make(chan struct{})
		go t.try()
	}
	ended, began := t.ended, t.began
	t.mu.Unlock()
	select {
	case <-ended:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.err
	case <-time.After(t.patience):
		return fmt.Errorf("a write has not ended for %v", time.Since(began).Round(time.Second))
	}
}

func (t *trial) try() {
	err := t.write()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err, t.at = err, time.Now()
	close(t.ended)
	t.ended = nil
}

// newTrial tries in a directory.
func newTrial(dir string) *trial {
	return &trial{patience: trialTime, write: func() error { return writeTrial(filepath.Join(dir, trialFile)) }}
}

// writeTrial writes and removes a file.
func writeTrial(path string) error {
	f, err := ownfile.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("written, and removed"))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
