package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Times of what is known of a provider.
const (
	// fresh is after what time the provider's address and keys are asked for anew: a key that it withdrew counts no
	// longer than that while it answers.
	fresh = 15 * time.Minute
	// stale is for how long the keys count while the provider does not answer.
	stale = 24 * time.Hour
)

// algorithms are those by which a token may be signed: with a key that only the provider has.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
		oidc.PS512, oidc.EdDSA}
}

// Provider is the one by which people sign in.
type Provider struct {
	conf   Config
	client *http.Client
	pem    string
	now    func() time.Time

	mu    sync.Mutex
	known *known
	fault error
	since time.Time // of the fault

	asking chan struct{} // held by who asks the provider
}

// known is what the provider has said of itself. Only its keys change: they are asked for when a token names another.
type known struct {
	at   time.Time
	keys *ring
	// before are keys that the provider gave earlier, for when it does not give those of now; nil for none.
	before *ring
	ends   Endpoints
}

// ring is a set of keys.
type ring struct {
	oidc.KeySet
	at time.Time
	// served: the provider has given them.
	served atomic.Bool
}

// Endpoints are where people sign in.
type Endpoints struct {
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
	Device        string `json:"device_authorization_endpoint"`
	// Revocation is where what renews a sign-in is taken back (RFC 7009); "" for nowhere.
	Revocation string `json:"revocation_endpoint"`
	Keys       string `json:"jwks_uri"`
}

// New makes a provider, which is not asked yet; nil for a configuration without one.
func New(conf Config, now func() time.Time) (*Provider, error) {
	if err := conf.Check(); err != nil || conf.Issuer == "" {
		return nil, err
	}
	client, pem, err := newClient(conf.CA)
	if err != nil {
		return nil, err
	}
	return &Provider{conf: conf, client: client, pem: pem, now: now, asking: make(chan struct{}, 1)}, nil
}

// Terms are what a person's program needs to sign in.
type Terms struct {
	Issuer, ClientID string
	Scopes           []string
	Endpoints        Endpoints
	// CA are the authorities of the provider's certificate in PEM form; "" for those of the machine.
	CA string
}

// Terms asks the provider where people sign in.
func (p *Provider) Terms(ctx context.Context) (*Terms, error) {
	k, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	scopes := []string{oidc.ScopeOpenID}
	for _, s := range p.conf.Scopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return &Terms{Issuer: p.conf.Issuer, ClientID: p.conf.ClientID, Scopes: scopes, Endpoints: k.ends, CA: p.pem}, nil
}

// AwayError says that the provider could not be asked.
type AwayError struct {
	Issuer string
	Err    error
}

func (e *AwayError) Error() string {
	return fmt.Sprintf("the identity provider %s does not answer as it should: %v; nobody can sign in or renew "+
		"a sign-in until it does; who is signed in stays so until that ends, tokens of \"heddle access token create\" "+
		"count, and so does root at a controller's socket", e.Issuer, e.Err)
}
func (e *AwayError) Unwrap() error { return e.Err }

// look is what is known of the provider, asked anew where it is old.
func (p *Provider) look(ctx context.Context) (*known, error) {
	if k := p.current(); k != nil && p.now().Sub(k.at) < fresh {
		return k, nil
	}
	select { // one asks, the others wait for what it hears
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	had := p.current()
	if had != nil && p.now().Sub(had.at) < fresh {
		return had, nil
	}
	k, err := p.ask(ctx)
	if err == nil {
		k.before = had.served()
		p.note(nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known = k
		return k, nil
	}
	p.note(err)
	if had != nil && p.now().Sub(had.at) < stale {
		return had, nil
	}
	return nil, &AwayError{p.conf.Issuer, err}
}

func (p *Provider) current() *known {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// ask asks the provider for its addresses.
func (p *Provider) ask(ctx context.Context) (*known, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.conf.Issuer)
	if err != nil {
		return nil, brief(err)
	}
	k := &known{at: p.now()}
	if err := found.Claims(&k.ends); err != nil {
		return nil, brief(err)
	}
	for _, end := range []string{k.ends.Authorization, k.ends.Token, k.ends.Keys} {
		if err := secure(end); err != nil {
			return nil, fmt.Errorf("what it says of itself: %w", err)
		}
	}
	for _, end := range []string{k.ends.Device, k.ends.Revocation} {
		if end == "" {
			continue
		}
		if err := secure(end); err != nil {
			return nil, fmt.Errorf("what it says of itself: %w", err)
		}
	}
	// The keys are asked for beyond this call.
	k.keys = &ring{at: k.at, KeySet: oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), p.client),
		k.ends.Keys)}
	return k, nil
}

// served are the newest keys that the provider has given; nil for none.
func (k *known) served() *ring {
	switch {
	case k == nil:
		return nil
	case k.keys.served.Load():
		return k.keys
	}
	return k.before
}

// note keeps whether the provider answers.
func (p *Provider) note(err error) {
	if errors.Is(err, errTooOften) || errors.Is(err, context.Canceled) {
		return // which says nothing of it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.fault == nil {
		p.since = p.now()
	}
	p.fault = err
}

// State is how the provider is.
type State struct {
	Issuer string
	// Fault says why it could not be asked last, since Since; "" where it answered.
	Fault string
	Since time.Time
}

// State is how the provider was when it was asked last; the zero value for none.
func (p *Provider) State() State {
	if p == nil {
		return State{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{Issuer: p.conf.Issuer}
	if p.fault != nil {
		s.Fault, s.Since = p.fault.Error(), p.since
	}
	return s
}

// Watch asks the provider now and then until ctx ends, so that its failure shows before somebody wants to sign in.
func (p *Provider) Watch(ctx context.Context) {
	if p == nil {
		return
	}
	for {
		wait := fresh
		if _, err := p.look(ctx); err != nil || p.State().Fault != "" {
			wait = time.Minute
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// longestFault is how much of an error of the provider is told, in bytes: it may quote its answer.
const longestFault = 300

// brief is an error without what a provider said at length.
func brief(err error) error {
	if text := err.Error(); len(text) > longestFault {
		return fmt.Errorf("%.*s…", longestFault, text)
	}
	return err
}

// Life is for how long a sign-in counts.
func (p *Provider) Life() time.Duration { return cmp.Or(p.conf.Life, DefaultLife) }
