package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli/contexts"
	"heddle/internal/cli/signin"
)

// renewEarly is how long before its end a sign-in is renewed.
const renewEarly = time.Minute

// renewal renews the sign-in of a context when it ends.
type renewal struct {
	path string
	conf *tls.Config

	mu      sync.Mutex
	context contexts.Context
}

// token is that of the context, which counts now.
func (r *renewal) token(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if Lasts(r.context.SignIn, renewEarly) {
		return r.context.Secret()
	}
	err := r.renew(ctx)
	if err != nil && !Lasts(r.context.SignIn, 0) {
		return "", fmt.Errorf("your sign-in has ended, and could not be renewed: %w", err)
	}
	return r.context.Secret()
}

// Lasts reports whether a sign-in counts for so long at least.
func Lasts(s *contexts.SignIn, least time.Duration) bool {
	return s != nil && time.Until(s.Expires) > least
}

// renew renews the sign-in, unless another program of the user has meanwhile.
func (r *renewal) renew(ctx context.Context) error {
	file, unlock, err := contexts.Lock(ctx, r.path)
	if err != nil {
		return err
	}
	defer unlock()
	name := r.context.Name
	c, ok := file.Get(name)
	if !ok || c.SignIn == nil || c.Token == "" {
		return fmt.Errorf("you have signed out meanwhile: heddle login %s", name)
	}
	if Lasts(c.SignIn, renewEarly) {
		r.context = *c
		return nil
	}
	if c.SignIn.Refresh == "" {
		return fmt.Errorf("the identity provider gave nothing to renew it: heddle login %s", name)
	}
	open := api.NewRemoteFleet(api.Remote{URL: c.Controller, TLS: r.conf})
	terms, err := open.SignInTerms(ctx)
	if err != nil {
		return err
	}
	got, err := ProviderOf(terms).Refresh(ctx, c.SignIn.Refresh, c.SignIn.Nonce)
	var refused *signin.RefusedError
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: heddle login %s", err, name)
	}
	if err != nil {
		return err
	}
	in, err := open.SignIn(ctx, got.IDToken, got.Nonce)
	if err != nil {
		c.SignIn.Refresh = got.Refresh // the one before may count no more
		return errors.Join(err, file.Save())
	}
	c.Token = in.Token
	c.SignIn = &contexts.SignIn{Expires: in.Expires, Refresh: got.Refresh, Nonce: c.SignIn.Nonce}
	r.context = *c
	return file.Save()
}

func ProviderOf(t *api.SignInTerms) *signin.Provider {
	return &signin.Provider{Issuer: t.Issuer, ClientID: t.ClientID, Scopes: t.Scopes,
		AuthorizationURL: t.AuthorizationURL, TokenURL: t.TokenURL, DeviceURL: t.DeviceURL, CA: t.CA,
		RevocationURL: t.RevocationURL}
}
