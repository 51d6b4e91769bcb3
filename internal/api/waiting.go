package api

import (
	"context"
	"net/http"
	"strings"
)

// Waits is told of calls that have no answer yet, so that a person can see who is waited for.
type Waits interface {
	// Waiting is called when a call begins, with who is asked, such as "the agent at /run/heddle/default.sock". What it
	// returns is called once, when the answer begins or the call has failed.
	Waiting(who string) (answered func())
}

// waitsKey is that of the Waits of a context.
type waitsKey struct{}

// WithWaits returns a context whose calls are told to w.
func WithWaits(ctx context.Context, w Waits) context.Context {
	return context.WithValue(ctx, waitsKey{}, w)
}

// awaited tells the Waits of a call's context that the call is under way. Calls that follow something are left out:
// they have no answer while nothing happens.
type awaited struct {
	who  string
	next http.RoundTripper
}

func (a awaited) RoundTrip(r *http.Request) (*http.Response, error) {
	w, ok := r.Context().Value(waitsKey{}).(Waits)
	if !ok || strings.HasPrefix(r.Header.Get("Content-Type"), "application/connect+") {
		return a.next.RoundTrip(r)
	}
	defer w.Waiting(a.who)()
	return a.next.RoundTrip(r)
}
