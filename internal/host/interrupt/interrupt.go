// Package interrupt ends waits that the operating system does not: the opening of a pipe that nobody writes to, a read
// from a terminal.
package interrupt

import (
	"context"
	"errors"
	"io"
)

// ErrInterrupted says that a wait was ended from outside.
var ErrInterrupted = errors.New("interrupted before there was anything to read")

// Do is f, or ErrInterrupted when ctx ends first; f then goes on by itself, and what it gives is lost. It is for
// reading, by a program that ends.
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

// Reader is r until ctx ends.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	// A read that goes on by itself must not write where the caller reads.
	b, err := Do(r.ctx, func() ([]byte, error) {
		own := make([]byte, min(len(p), 64<<10))
		n, err := r.r.Read(own)
		return own[:n], err
	})
	return copy(p, b), err
}
