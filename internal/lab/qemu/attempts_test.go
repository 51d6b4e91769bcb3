package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
)

// guest is a QEMU guest that has the exchange program at exchangePath.
type guest struct {
	*qemu.Guest
	stopped *atomic.Bool // the test has asked for its end
}

// Stop ends the guest.
func (g guest) Stop() error {
	g.stopped.Store(true)
	return g.Guest.Stop()
}

// errGuestEnded is the cause of the end of an attempt whose emulated guest ended without being asked.
var errGuestEnded = errors.New("an emulated guest has ended by itself")

// attemptKey is the key of what ends an attempt in its context.
type attemptKey struct{}

// watch ends the attempt that ctx belongs to, if there is one, when the guest ends by itself.
func (g guest) watch(ctx context.Context) {
	end, ok := ctx.Value(attemptKey{}).(context.CancelCauseFunc)
	if !ok {
		return
	}
	go func() {
		<-g.Done()
		if !g.stopped.Load() && ctx.Err() == nil {
			end(fmt.Errorf("%w: %s%s", errGuestEnded, g.Name(), g.Said()))
		}
	}()
}

// attempts runs a test with an emulated guest that moves. On a loaded machine, QEMU's emulation seldom lets the guest's
// kernel fail after it has moved; the guest then resets, and its QEMU ends without an error. Such an attempt says
// nothing about the switch: it is skipped with the guest's last words, and made again, at most twice.
func attempts(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	const most = 3
	for i := 1; ; i++ {
		limit, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		ctx, end := context.WithCancelCause(limit)
		ctx = context.WithValue(ctx, attemptKey{}, end)
		passed := t.Run(fmt.Sprintf("attempt %d", i), func(t *testing.T) { f(t, ctx) })
		why := context.Cause(ctx)
		end(nil)
		stop()
		switch {
		case !passed || !errors.Is(why, errGuestEnded):
			return
		case i == most:
			t.Fatalf("the guest ended by itself in all of %d attempts; at last: %v", most, why)
		}
	}
}

// fatal ends a test that waited for something in vain. An attempt whose guest ended by itself is skipped instead.
func fatal(t *testing.T, ctx context.Context, format string, args ...any) {
	t.Helper()
	if why := context.Cause(ctx); errors.Is(why, errGuestEnded) {
		t.Skipf("this attempt says nothing: %v", why)
	}
	t.Fatalf(format, args...)
}

// await waits until the guest runs at the target of its migration.
func (m *moves) await(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-m.resumed:
	case <-ctx.Done():
		fatal(t, ctx, "the guest never runs where it was migrated to: %v", context.Cause(ctx))
	}
}
