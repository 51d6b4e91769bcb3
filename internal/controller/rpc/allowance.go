package rpc

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
)

const (
	// guestBody bounds what a caller without a certificate may send, and a host beside its slice, in bytes: a token,
	// and a request for a certificate.
	guestBody = 64 << 10
	// mostFollowing is how many streams of slices one host may have at a time. It needs one, and another for a moment
	// when it comes again; each may make the controller read a message of maxBody.
	mostFollowing = 4
)

// allowance bounds what callers may make a controller read at a time: what a stolen host can take is bounded, however
// many connections it opens (S104).
type allowance struct {
	mu        sync.Mutex
	following map[string]int // streams, by host
}

// bound applies the caller's bounds to a request. leave ends it.
func (a *allowance) bound(ctx context.Context, w http.ResponseWriter, r *http.Request) (leave func(), err error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	switch {
	case c.peer != nil && c.peer.Name.Kind == identity.Host &&
		r.URL.Path == controllerv1connect.HostServiceFollowSliceProcedure:
		return a.follow(c.peer.Name.ID)
	case c.peer == nil, c.peer.Name.Kind == identity.Host:
		r.Body = http.MaxBytesReader(w, r.Body, guestBody)
	}
	return func() {}, nil
}

func (a *allowance) follow(host string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.following[host] >= mostFollowing {
		return nil, errors.New("the host has too many streams at once: end those before")
	}
	if a.following == nil {
		a.following = map[string]int{}
	}
	a.following[host]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.following[host]--; a.following[host] == 0 {
			delete(a.following, host)
		}
	}, nil
}
