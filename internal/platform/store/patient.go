package store

import (
	"context"
	"errors"
	"time"
)

// patientPause is between two attempts of Patiently. An attempt itself waits for etcd.
const patientPause = 100 * time.Millisecond

// Patiently does something that a controller can't start without, such as a write, and does it again while etcd has no
// majority that takes it: members that start together lose their leader now and then. do may have been carried out when
// it is called again. The log says what is waited for. It ends with another error, with ctx, or with the embedded etcd.
func Patiently(ctx context.Context, s *Store, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.died():
			cancel()
		case <-ctx.Done():
		}
	}()
	for waits := false; ; {
		err := do(ctx)
		var away *Unavailable
		if !errors.As(err, &away) {
			return err
		}
		if !waits {
			s.log.Warn("waiting for etcd: it takes no writes now, which ends when the majority of it is there",
				"to", what, "err", err)
		}
		waits = true
		if !pause(ctx, patientPause) {
			return err
		}
	}
}
