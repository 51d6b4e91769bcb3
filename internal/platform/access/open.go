package access

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/audit"
	"heddle/internal/platform/pki"
)

// openTime is how long a request without a token may take to come.
const openTime = 5 * time.Second

// open answers a request without a token for a call that takes none.
func (g *Guard) open(w http.ResponseWriter, r *http.Request, next http.Handler) {
	c := Caller{From: r.RemoteAddr}
	g.answer(w, r.WithContext(with(r.Context(), c)), c, next)
}

// nothing is the body of a request without fields, for the codec of its content type. What was sent is not waited for.
func nothing(contentType string) io.ReadCloser {
	kind, _, _ := strings.Cut(contentType, ";")
	body := ""
	if strings.HasSuffix(strings.TrimSpace(kind), "json") {
		body = "{}"
	}
	if strings.HasPrefix(kind, "application/grpc") {
		body = "\x00\x00\x00\x00" + string(rune(len(body))) + body // an envelope: flags and the length
	}
	return io.NopCloser(strings.NewReader(body))
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
	if s.Person != "" { // from wherever: one person's attempts are counted together
		within, times = g.turned.of(Caller{Token: &pki.APIRecord{Person: s.Person, Issuer: s.Issuer}}.key(), g.Now())
	}
	if !within {
		return connect.NewError(connect.CodeResourceExhausted, "too many of your sign-ins failed: try again "+
			"in a minute")
	}
	if times > 1 {
		e.Times = times
	}
	g.refuse(e, why)
	return connect.NewError(connect.CodeUnauthenticated, why.Error())
}
