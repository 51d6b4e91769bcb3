package idp

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// What the provider knows.
const (
	// ClientID is the client of programs with a browser, DeviceID of those without.
	ClientID = "heddle"
	// Email is a person's, Group what they are in.
	Email = "test-user@zitadel.ch"
	Group = "net-team"

	password = "verysecure"
)

// Provider is an identity provider that runs.
type Provider struct {
	// URL is its issuer, CA a file with its certificate.
	URL, CA string

	t    testing.TB
	srv  *httptest.Server
	mu   sync.Mutex
	away bool
}

// known is what the provider has of people and clients.
type known struct {
	*storage.Storage
	users storage.UserStore
}

// GetClientByClientID finds a client.
func (k known) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := k.Storage.GetClientByClientID(ctx, id)
	return telling{c}, err
}

// telling is a client whose ID tokens have the person's claims.
type telling struct{ op.Client }

// IDTokenUserinfoClaimsAssertion is true.
func (telling) IDTokenUserinfoClaimsAssertion() bool { return true }

// GrantTypes are those of programs.
func (telling) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

// SetUserinfoFromRequest tells a person's claims. A device's person is named by what they typed.
func (k known) SetUserinfoFromRequest(_ context.Context, u *oidc.UserInfo, q op.IDTokenRequest, _ []string) error {
	who := k.users.GetUserByID(q.GetSubject())
	if who == nil {
		who = k.users.GetUserByUsername(q.GetSubject())
	}
	if who == nil {
		return fmt.Errorf("there is no %s", q.GetSubject())
	}
	u.Subject, u.Email, u.EmailVerified = q.GetSubject(), who.Email, oidc.Bool(who.EmailVerified)
	u.AppendClaims("groups", []string{Group})
	return nil
}

// New starts a provider.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t}
	p.srv = httptest.NewUnstartedServer(nil)
	p.URL = "https://" + p.srv.Listener.Addr().String()
	storage.RegisterClients(storage.NativeClient(ClientID, "http://127.0.0.1/callback"))
	users := storage.NewUserStore(p.URL)
	router := exampleop.SetupServer(p.URL, known{storage.NewStorage(users), users}, nil, false)
	p.srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		router.ServeHTTP(w, r)
	})
	p.srv.StartTLS()
	t.Cleanup(p.srv.Close)
	p.CA = filepath.Join(t.TempDir(), "provider.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.srv.Certificate().Raw})
	if err := os.WriteFile(p.CA, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Away says whether the provider refuses to answer.
func (p *Provider) Away(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = is
}

// browser is what a person uses.
func (p *Provider) browser() (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: p.srv.Client().Transport, Jar: jar}, nil
}

func page(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s: %s", resp.Request.URL.Path, resp.Status, text)
	}
	return string(text), err
}

var hidden = regexp.MustCompile(`name="id" value="([^"]*)"`)

// Person signs in at an address as somebody with a browser does, and returns the last page.
func (p *Provider) Person(at string) (string, error) {
	b, err := p.browser()
	if err != nil {
		return "", err
	}
	form, err := page(b.Get(at))
	if err != nil {
		return "", err
	}
	m := hidden.FindStringSubmatch(form)
	if m == nil {
		return "", fmt.Errorf("that is no page to sign in: %s", form)
	}
	return page(b.PostForm(p.URL+"/login/username", url.Values{"id": {m[1]}, "username": {p.user()},
		"password": {password}}))
}

// user is the name of the person.
func (p *Provider) user() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(p.URL, "https://"), ":")
	return "test-user@" + host
}

// Device signs in for a device that shows a code.
func (p *Provider) Device(code string) error {
	b, err := p.browser()
	if err != nil {
		return err
	}
	if _, err := page(b.PostForm(p.URL+"/device/login", url.Values{"user_code": {code}, "username": {p.user()},
		"password": {password}})); err != nil {
		return err
	}
	_, err = page(b.Get(p.URL + "/device/confirm?action=allowed"))
	return err
}
