package signin

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"heddle/internal/spec/printable"
)

// Provider is where somebody signs in.
type Provider struct {
	Issuer, ClientID string
	Scopes           []string
	// AuthorizationURL is for browsers, DeviceURL for who has none; "" for none.
	AuthorizationURL, TokenURL, DeviceURL string
	// RevocationURL is where what renews a sign-in is taken back (RFC 7009); "" where the provider has none.
	RevocationURL string
	// CA are the authorities of the provider's certificate in PEM form; "" for those of the machine.
	CA string
}

// Got is what a provider gave.
type Got struct {
	IDToken string
	// Nonce is what the ID token has of the request; "" where it has none.
	Nonce string
	// Refresh gets another ID token later; "" where the provider gave none.
	Refresh string
}

// Bounds of a provider's answers.
const (
	answerTime    = 10 * time.Second
	longestAnswer = 1 << 20
)

func (p *Provider) config(redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, Scopes: p.Scopes, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthorizationURL, TokenURL: p.TokenURL, DeviceAuthURL: p.DeviceURL,
			AuthStyle: oauth2.AuthStyleInParams}}
}

// with is a context by which the provider is asked.
func (p *Provider) with(ctx context.Context) (context.Context, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.CA != "" {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM([]byte(p.CA)) {
			return nil, errors.New("the controller names no certificate of the identity provider's authority")
		}
	}
	client := &http.Client{Timeout: answerTime, Transport: short{&http.Transport{TLSClientConfig: conf,
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: answerTime}}}
	return context.WithValue(ctx, oauth2.HTTPClient, client), nil
}

// short bounds answers, and asks by https alone.
type short struct{ next http.RoundTripper }

// RoundTrip asks.
func (s short) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: an identity provider is asked by https alone", r.URL.Redacted())
	}
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, longestAnswer), resp.Body}
	}
	return resp, err
}

// secret is a text that nobody guesses.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// got reads what the provider gave. nonce is what was sent to it, "" for nothing; had is the refresh token of before.
func (p *Provider) got(t *oauth2.Token, nonce, had string) (*Got, error) {
	id, _ := t.Extra("id_token").(string)
	if id == "" {
		return nil, fmt.Errorf("the identity provider %s gave no ID token: does its client %s have the scope openid?",
			p.Issuer, p.ClientID)
	}
	out := &Got{IDToken: id, Refresh: had}
	if t.RefreshToken != "" {
		out.Refresh = t.RefreshToken
	}
	if claimed := nonceOf(id); claimed != "" {
		if claimed != nonce {
			return nil, errors.New("the identity provider's answer is not that to this sign-in: try again")
		}
		out.Nonce = claimed
	}
	return out, nil
}

// nonceOf is the nonce of an ID token, which the controller makes sure of.
func nonceOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Nonce string }
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Nonce
}

// Refresh gets another ID token. nonce is that of the sign-in.
func (p *Provider) Refresh(ctx context.Context, refresh, nonce string) (*Got, error) {
	ctx, err := p.with(ctx)
	if err != nil {
		return nil, err
	}
	t, err := p.config("").TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return nil, p.failed(err)
	}
	return p.got(t, nonce, refresh)
}

// RefusedError says that the provider was asked and refused: to try again is of no use.
type RefusedError struct{ Issuer, Code, Why string }

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("the identity provider %s refuses: %s", e.Issuer, e.Code)
	if e.Why != "" {
		text += " (" + e.Why + ")"
	}
	return text
}

// failed is an error without what may be secret in a provider's answer.
func (p *Provider) failed(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode != "":
		return &RefusedError{p.Issuer, printable.Text(refused.ErrorCode), printable.Text(refused.ErrorDescription)}
	case errors.As(err, &refused) && refused.Response != nil:
		return fmt.Errorf("the identity provider %s answers %s", p.Issuer, refused.Response.Status)
	}
	return fmt.Errorf("the identity provider %s can't be asked: %w", p.Issuer, err)
}
