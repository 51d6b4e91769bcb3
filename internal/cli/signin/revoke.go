package signin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// Revoke takes back what renews a sign-in (RFC 7009): a copy of it gets nothing from the provider any more.
func (p *Provider) Revoke(ctx context.Context, refresh string) error {
	ctx, err := p.with(ctx)
	if err != nil {
		return err
	}
	form := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}, "client_id": {p.ClientID}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.RevocationURL, strings.NewReader(form.Encode()))
	if err != nil {
		return p.failed(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := oauth2.NewClient(ctx, nil).Do(r)
	if err != nil {
		return p.failed(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // its status says what became of it
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the identity provider %s answers %s", p.Issuer, resp.Status)
	}
	return nil
}
