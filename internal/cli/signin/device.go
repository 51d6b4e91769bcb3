package signin

import (
	"context"
	"fmt"

	"golang.org/x/oauth2"
)

// Prompt is what a person without a browser here does in one elsewhere.
type Prompt struct {
	// URL is to be opened, Code typed there; Whole is an address with the code in it, "" for none.
	URL, Code, Whole string
}

// ByDevice signs in by a code that somebody types into a browser elsewhere (RFC 8628). tell is called with it.
func (p *Provider) ByDevice(ctx context.Context, tell func(Prompt) error) (*Got, error) {
	if p.DeviceURL == "" {
		return nil, fmt.Errorf("the identity provider %s has no sign-in for machines without a browser (RFC 8628)",
			p.Issuer)
	}
	ctx, err := p.with(ctx)
	if err != nil {
		return nil, err
	}
	conf := p.config("")
	verifier := oauth2.GenerateVerifier()
	d, err := conf.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return nil, p.failed(err)
	}
	if err := tell(Prompt{d.VerificationURI, d.UserCode, d.VerificationURIComplete}); err != nil {
		return nil, err
	}
	t, err := conf.DeviceAccessToken(ctx, d, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, p.failed(err)
	}
	return p.got(t, "", "")
}
