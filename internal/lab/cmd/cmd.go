package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"heddle/internal/lab"
	"heddle/internal/spec"
)

// Fault is an error in the request: nothing was begun.
type Fault struct{ Err error }

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap gives the error that says what is wrong.
func (f *Fault) Unwrap() error { return f.Err }

func faultf(format string, args ...any) error { return &Fault{fmt.Errorf(format, args...)} }

// asFault makes errors about what the user wrote Faults; others stay as they are.
func asFault(err error) error {
	var faults spec.Faults
	if errors.As(err, &faults) || errors.Is(err, os.ErrNotExist) {
		return &Fault{err}
	}
	return err
}

// needRoot explains a missing privilege before anything is begun.
func needRoot(what string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("to %s takes root: it makes network namespaces and loads programs into the kernel; run it "+
			"with sudo", what)
	}
	return nil
}

// toTheEnd runs f, whose context also ends with the terminal, and rewords the error of an interrupted run.
func toTheEnd[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, stop := untilHangup(ctx)
	defer stop()
	v, err := f(ctx)
	return v, interrupted(ctx, err)
}

// untilHangup also ends with the terminal: a closed window must not leave half a lab behind. Under nohup it does not
// end.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// interrupted rewords an error for a person who has pressed Ctrl-C; any other error is returned unchanged.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) || errors.Is(err, lab.ErrLeft) {
		return err
	}
	return errors.New("interrupted; everything that was made is removed again")
}
