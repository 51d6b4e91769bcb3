package rpc

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/serve"
)

const (
	// guestBody bounds what a caller without a certificate may send, and a host outside of its streams, in bytes: a
	// token, and a request for a certificate.
	guestBody = 64 << 10
	// guestAskTime is how long the body of a request without a certificate may take to come.
	guestAskTime = 10 * time.Second
	// mostFollowing is how many streams of each kind one host may have at a time: of slices, of overlay segments and of
	// probes. It needs one, and another for a moment when it comes again; each may make the controller read a message
	// of maxBody.
	mostFollowing = 4
	// mostDescribing is how many questions one host may have under way at a time about guests that arrive: each has the
	// controller ask other hosts.
	mostDescribing = 32
)

// allowance bounds what callers may make a controller read at a time: what a stolen host can take is bounded, however
// many connections it opens (S104).
type allowance struct {
	mu        sync.Mutex
	following map[string]*counts // streams, by kind and host
	// describing are questions about guests that arrive, by host.
	describing counts
}

// counts are how many of something each host has.
type counts map[string]int

// bound applies the caller's bounds to a request. leave ends it.
func (a *allowance) bound(ctx context.Context, w http.ResponseWriter, r *http.Request) (leave func(), err error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	isHost := c.peer != nil && c.peer.Name.Kind == identity.Host
	switch path := r.URL.Path; {
	case isHost && (path == controllerv1connect.HostServiceFollowSliceProcedure ||
		path == controllerv1connect.HostServiceFollowSegmentsProcedure ||
		path == controllerv1connect.HostServiceFollowProbesProcedure):
		return a.one(a.streams(path), c.peer.Name.ID, mostFollowing, "streams")
	case isHost && path == controllerv1connect.HostServiceDescribeArrivalProcedure:
		r.Body = http.MaxBytesReader(w, r.Body, guestBody)
		return a.one(&a.describing, c.peer.Name.ID, mostDescribing, "questions")
	case c.peer == nil:
		r.Body = access.Within(w, http.MaxBytesReader(w, r.Body, guestBody), guestAskTime)
		return serve.Guest(r)
	case isHost:
		r.Body = http.MaxBytesReader(w, r.Body, guestBody)
	}
	return func() {}, nil
}

// streams counts those of one kind.
func (a *allowance) streams(kind string) *counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.following == nil {
		a.following = map[string]*counts{}
	}
	if a.following[kind] == nil {
		a.following[kind] = &counts{}
	}
	return a.following[kind]
}

// one counts another one of a host, most at a time.
func (a *allowance) one(of *counts, host string, most int, what string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if (*of)[host] >= most {
		return nil, fmt.Errorf("the host has too many %s at once: end those before", what)
	}
	if *of == nil {
		*of = counts{}
	}
	(*of)[host]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if (*of)[host]--; (*of)[host] == 0 {
			delete(*of, host)
		}
	}, nil
}
