package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// callback is where the browser comes back to.
const callback = "/callback"

// ByBrowser signs in with a browser on this machine: tell is called with the address that it opens. port is where it
// comes back to on the loopback, 0 for any.
func (p *Provider) ByBrowser(ctx context.Context, port int, tell func(url string) error) (*Got, error) {
	ctx, err := p.with(ctx)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser to come back: %w", err)
	}
	conf := p.config("http://" + l.Addr().String() + callback)
	back := &returned{state: secret(), answer: make(chan answer, 1)}
	srv := &http.Server{Handler: back, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10}
	var g sync.WaitGroup
	g.Go(func() { _ = srv.Serve(l) }) // ends with Shutdown
	defer g.Wait()
	defer func() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(soon) != nil {
			_ = srv.Close()
		}
	}()
	verifier, nonce := oauth2.GenerateVerifier(), secret()
	if err := tell(conf.AuthCodeURL(back.state, append(p.consent(), oauth2.S256ChallengeOption(verifier),
		oauth2.SetAuthURLParam("nonce", nonce))...)); err != nil {
		return nil, err
	}
	select {
	case a := <-back.answer:
		if a.err != nil {
			return nil, &RefusedError{Issuer: p.Issuer, Code: a.err.Error()}
		}
		t, err := conf.Exchange(ctx, a.code, oauth2.VerifierOption(verifier))
		if err != nil {
			return nil, p.failed(err)
		}
		out, err := p.got(t, nonce, "")
		if err == nil && out.Nonce == "" {
			err = errors.New("the identity provider's answer does not say to which sign-in (nonce)")
		}
		return out, err
	case <-ctx.Done():
		return nil, fmt.Errorf("nobody has signed in: %w", context.Cause(ctx))
	}
}

// consent asks the person for their consent where what renews the sign-in is asked for: without it a provider has to
// pass over that (OpenID Connect Core 1.0, 11).
func (p *Provider) consent() []oauth2.AuthCodeOption {
	if !slices.Contains(p.Scopes, "offline_access") {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("prompt", "consent")}
}

// answer is what the browser brings back.
type answer struct {
	code string
	err  error
}

// returned answers the browser that comes back.
type returned struct {
	state  string
	answer chan answer
}

// ServeHTTP answers.
func (r *returned) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	form := q.URL.Query()
	switch {
	case q.URL.Path != callback || q.Method != http.MethodGet:
		http.NotFound(w, q)
		return
	case subtle.ConstantTimeCompare([]byte(form.Get("state")), []byte(r.state)) != 1:
		http.Error(w, "This is not the answer to the sign-in that waits here.", http.StatusBadRequest)
		return
	}
	a := answer{code: form.Get("code")}
	text := "You are signed in: close this page, and go on in the terminal."
	if a.code == "" {
		a.err = fmt.Errorf("%.200q", form.Get("error"))
		text = "The identity provider refused: the terminal says why."
	}
	select {
	case r.answer <- a:
	default: // it came twice
	}
	_, _ = fmt.Fprintln(w, text) // a browser that went away needs no answer
}
