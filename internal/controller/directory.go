package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heddle/internal/platform/store"
)

// directoryPause is between two looks at a data directory that can't be written.
const directoryPause = time.Second

// sayEvery is after how many looks it is said again.
const sayEvery = 60

// awaitDirectory waits until the data directory can be written. A controller that ends and is started again, over and
// over, would say less with more words.
func (o *Options) awaitDirectory(ctx context.Context) error {
	for waited := 0; ; waited++ {
		err := o.writable()
		if err == nil {
			if waited > 0 {
				o.Log.Info("the data directory can be written again", "directory", o.Dir)
			}
			return nil
		}
		if waited%sayEvery == 0 {
			o.Log.Error("waiting until the data directory can be written: hosts go on by what they have", "err", err)
		}
		select {
		case <-time.After(directoryPause):
		case <-ctx.Done():
			return fmt.Errorf("the data directory: %w", err)
		}
	}
}

// writable makes sure that the data directory can be written, and has space for an etcd.
func (o *Options) writable() error {
	probe, err := os.CreateTemp(o.Dir, ".writable-")
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is made
	}
	if err != nil {
		return err
	}
	_, err = probe.Write(make([]byte, 4096))
	err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name()))
	if err == nil && len(o.Outside.Endpoints) == 0 {
		err = store.Room(o.Dir)
	}
	return err
}
