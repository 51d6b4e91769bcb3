package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli/contexts"
	"heddle/internal/identity"
)

// The environment of who calls a controller over TLS without a context, such as a script.
const (
	CAVar        = "HEDDLE_CONTROLLER_CA"
	TokenVar     = "HEDDLE_API_TOKEN"
	tokenFileVar = "HEDDLE_API_TOKEN_FILE"
)

// Client is that of the controller that a command talks to.
func (t *FleetTarget) Client() (*api.Fleet, error) {
	if t.Getenv == nil {
		t.Getenv = os.Getenv
	}
	if t.Address != "" && t.Context == "" {
		return t.at(t.Address)
	}
	file, err := t.contexts()
	if err != nil {
		return nil, err
	}
	switch name := cmp.Or(t.Context, file.Current); {
	case name != "":
		c, ok := file.Get(name)
		if !ok {
			return nil, Usagef("there is no context %q: see heddle context list", name)
		}
		if t.Address != "" && t.Address != c.Controller {
			return nil, Usagef("--controller %s is not that of context %s: give one of the two", t.Address, name)
		}
		return t.of(file, c)
	default:
		return t.at(t.Otherwise)
	}
}

func (t *FleetTarget) contexts() (*contexts.File, error) {
	path, err := contexts.Path(t.Getenv)
	if err != nil { // without a home there are no contexts
		return &contexts.File{}, nil
	}
	return contexts.Load(path)
}

// at is a client of the controller at an address.
func (t *FleetTarget) at(address string) (*api.Fleet, error) {
	if path := strings.TrimPrefix(address, "unix:"); strings.HasPrefix(path, "/") {
		return api.NewFleet(path), nil
	}
	if !strings.Contains(address, "://") {
		return nil, Usagef("--controller %s: give the path of a controller's socket, such as %s, or https://HOST:PORT",
			address, DefaultController)
	}
	url, err := contexts.URL(address)
	if err != nil {
		return nil, &UsageError{Err: err}
	}
	file, err := t.contexts()
	if err != nil {
		return nil, err
	}
	if c, ok := file.At(url); ok && t.Getenv(TokenVar)+t.Getenv(tokenFileVar) == "" {
		return t.of(file, c)
	}
	conf, err := Pinned(t.Getenv(CAVar))
	if err != nil {
		return nil, err
	}
	token, err := t.token()
	if err != nil {
		return nil, err
	}
	return api.NewRemoteFleet(api.Remote{URL: url, TLS: conf, Token: token}), nil
}

// token is that of the environment.
func (t *FleetTarget) token() (string, error) {
	text := t.Getenv(TokenVar)
	if file := t.Getenv(tokenFileVar); text == "" && file != "" {
		b, err := contexts.ReadPrivate(file)
		if err != nil {
			return "", fmt.Errorf("the token: %w", err)
		}
		text = string(b)
	}
	if text == "" {
		return "", Usagef("a token is needed: make a context (heddle context add), or set %s or %s", TokenVar,
			tokenFileVar)
	}
	return text, CheckToken(text)
}

// CheckToken says what is wrong with a token before it is sent.
func CheckToken(text string) error {
	if _, err := identity.ParseAPIToken(text); err != nil {
		return &UsageError{Err: err}
	}
	return nil
}

// Pinned is TLS with the authority that a user names: by its fingerprint, or by a file with its certificate.
func Pinned(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, Usagef("say by what the controller is known: make a context (heddle context add), or set %s to "+
			"the fingerprint of its authority, or to a file with its certificate (heddle access ca)", CAVar)
	}
	if fp, ok, err := fingerprint(ca); ok || err != nil {
		return identity.PinnedTLS(fp, identity.NewClock(time.Now)), err
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	trust, err := trustOf(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ca, err)
	}
	return ClientOf(trust), nil
}

// fingerprint reads 64 hexadecimal digits, with sha256: before them where somebody likes; ok is false for a file's
// name.
func fingerprint(text string) (fp identity.Fingerprint, ok bool, err error) {
	digits, said := strings.CutPrefix(strings.ToLower(text), "sha256:")
	if !said && (len(digits) != hex.EncodedLen(len(fp)) || strings.ContainsAny(digits, "/.")) {
		return fp, false, nil
	}
	if err := fp.UnmarshalText([]byte(digits)); err != nil {
		return fp, false, &UsageError{Err: err}
	}
	return fp, true, nil
}

// trustOf is what certificates of an authority stand for.
func trustOf(text []byte) (identity.Trust, error) {
	roots, err := identity.ParseCerts(text)
	if err != nil {
		return identity.Trust{}, err
	}
	if len(roots) == 0 {
		return identity.Trust{}, errors.New("there is no certificate in it")
	}
	var t identity.Trust
	for _, r := range roots {
		name, err := identity.NameOf(r)
		if err == nil && (name.Kind != identity.Authority || t.Cluster != "" && name.Cluster != t.Cluster) {
			err = errors.New("this is not the authority of one Heddle cluster")
		}
		if err != nil {
			return t, err
		}
		t.Cluster = name.Cluster
	}
	t.Roots = roots
	return t, nil
}

// ClientOf is TLS with the controllers of a cluster, at whatever address.
func ClientOf(trust identity.Trust) *tls.Config {
	own := &identity.Credentials{Trust: trust}
	return identity.Client{Own: func() (*identity.Credentials, error) { return own, nil },
		Clock: identity.NewClock(time.Now)}.TLS()
}

// of is a client by a context. Roots that a rotation puts in the place of others are taken into the context.
func (t *FleetTarget) of(file *contexts.File, c *contexts.Context) (*api.Fleet, error) {
	trust, err := c.Trust()
	if err != nil {
		return nil, err
	}
	token, err := c.Secret()
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, Usagef("you are not signed in at %s: heddle login %s", c.Controller, c.Name)
	}
	conf := ClientOf(trust)
	verify := conf.VerifyConnection
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		if err := verify(s); err != nil {
			return err
		}
		if next, changed := trust.Learn(s.PeerCertificates, time.Now()); changed {
			learned(file.Where(), c.Name, string(identity.PEMOf(next.Roots...)))
		}
		return nil
	}
	remote := api.Remote{URL: c.Controller, TLS: conf, Token: token}
	if c.SignIn != nil {
		remote.TokenNow = (&renewal{path: file.Where(), context: *c, conf: ClientOf(trust)}).token
	}
	return api.NewRemoteFleet(remote), nil
}

// LockTime bounds how long somebody else may change the user's contexts.
const LockTime = 5 * time.Second

// learned takes the roots of a context's controllers into the user's file. Where they can't be kept, the next command
// learns them again.
func learned(path, name, roots string) {
	ctx, cancel := context.WithTimeout(context.Background(), LockTime)
	defer cancel()
	file, unlock, err := contexts.Lock(ctx, path)
	if err != nil {
		return
	}
	defer unlock()
	if c, ok := file.Get(name); ok {
		c.Roots = roots
		_ = file.Save()
	}
}
