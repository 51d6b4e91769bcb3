package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Remote is a controller that is reached over TLS.
type Remote struct {
	// URL is https://HOST:PORT.
	URL string
	// TLS makes sure of the controller.
	TLS *tls.Config
	// Token says who calls; "" for who signs in.
	Token string
	// TokenNow is asked for it before each call where it changes; nil where it does not.
	TokenNow func(context.Context) (string, error)
}

// dialTime bounds the way to a controller.
const dialTime = 10 * time.Second

// NewRemoteFleet makes a client of a controller. It does not connect yet.
func NewRemoteFleet(r Remote) *Fleet {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetHTTP1(true)
	transport := &http.Transport{TLSClientConfig: r.TLS, TLSHandshakeTimeout: dialTime, Protocols: protocols,
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, IdleConnTimeout: time.Minute}
	return newFleet(r.URL, r.URL, bearer{transport, strings.TrimSuffix(r.URL, "/"), strings.TrimSpace(r.Token),
		r.TokenNow})
}

// bearer shows a token with each request to a controller. A request to another server, where the controller would have
// it go, is not made.
type bearer struct {
	next  http.RoundTripper
	url   string
	token string
	now   func(context.Context) (string, error)
}

// tokenError says that there is no token to show. The controller was not asked.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// RoundTrip asks.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if at := r.URL.Scheme + "://" + r.URL.Host; at != b.url {
		return nil, fmt.Errorf("the controller at %s sends its callers to %s, which is not followed", b.url, at)
	}
	token := b.token
	if b.now != nil {
		var err error
		if token, err = b.now(r.Context()); err != nil {
			return nil, &tokenError{err}
		}
	}
	r = r.Clone(r.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return b.next.RoundTrip(r)
}
