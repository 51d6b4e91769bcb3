package interrupt

import (
	"context"
	"errors"
	"io"
)

// ErrInterrupted means that a wait was ended from outside.
var ErrInterrupted = errors.New("interrupted before there was anything to read")

// Do runs f and returns its result, or ErrInterrupted if ctx ends first; f then continues in the background, and its
// result is lost. It is for reads by a program that is about to end.
func Do[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var zero T
		return zero, ErrInterrupted
	}
}

// Reader returns a reader that reads from r until ctx ends.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	// A read that continues in the background must not write to the caller's buffer.
	b, err := Do(r.ctx, func() ([]byte, error) {
		own := make([]byte, min(len(p), 64<<10))
		n, err := r.r.Read(own)
		return own[:n], err
	})
	return copy(p, b), err
}
