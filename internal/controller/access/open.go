package access

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/audit"
)

// Bounds of requests without a token, which anybody may send.
const (
	// mostOpen is how many are answered at a time: they take no room from those with a token.
	mostOpen = 16
	// openTime is how long one may take to come.
	openTime = 5 * time.Second
)

// open answers a request without a token for a call that takes none.
func (g *Guard) open(w http.ResponseWriter, r *http.Request, next http.Handler) {
	select {
	case g.openSlots <- struct{}{}:
		defer func() { <-g.openSlots }()
	default:
		g.write(w, r, connect.NewError(connect.CodeResourceExhausted, "the controller answers as many requests "+
			"without a token as it can at a time: try again"))
		return
	}
	g.bounded(w, r.WithContext(with(r.Context(), Caller{From: r.RemoteAddr})), Caller{}, min(openTime, g.ReadTime),
		next)
}

// SigningIn is somebody who signs in.
type SigningIn struct {
	// Person is as whom, "" where nobody is known; Issuer is the identity provider.
	Person, Issuer string
	Groups         []string
}

func (s SigningIn) entry(ctx context.Context) audit.Entry {
	c, _ := Of(ctx)
	return audit.Entry{Who: s.Person, Issuer: s.Issuer, Groups: s.Groups, From: c.From, Call: "SignIn"}
}

// SignIn records that a person gets a token, before they do. The caller calls done with what became of it.
func (g *Guard) SignIn(ctx context.Context, s SigningIn, token string) (done func(error), err error) {
	e := s.entry(ctx)
	e.Token = token
	return g.begin(ctx, e)
}

// NotSignedIn records that somebody was not signed in, at a bounded rate, and returns the answer to them.
func (g *Guard) NotSignedIn(ctx context.Context, s SigningIn, why error) error {
	e := s.entry(ctx)
	within, times := g.throttle.failed(e.From, g.Now())
	if !within {
		return connect.NewError(connect.CodeResourceExhausted, "too many sign-ins from your address failed: try again "+
			"in a minute")
	}
	if times > 1 {
		e.Times = times
	}
	g.refuse(e, why)
	return connect.NewError(connect.CodeUnauthenticated, why.Error())
}
