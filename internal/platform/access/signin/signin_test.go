package signin

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// forger is a provider that may say anything.
type forger struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu   sync.Mutex
	id   string // of the key that it shows
	keys http.HandlerFunc
	// asked is how often for its keys.
	asked atomic.Int64
}

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{t: t, key: testKey(), id: "k1"}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(f.answer))
	t.Cleanup(f.Close)
	return f
}

func (f *forger) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[2]s/auth","token_endpoint":"%[2]s/token",`+
			`"jwks_uri":"%[2]s/keys"}`, f.URL, f.URL)
		return
	}
	f.asked.Add(1)
	f.mu.Lock()
	id, keys := f.id, f.keys
	f.mu.Unlock()
	if keys != nil {
		keys(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: f.key.Public(), KeyID: id,
		Algorithm: "RS256", Use: "sig"}}})
}

// shows sets which key the provider shows, or how it answers who asks for it.
func (f *forger) shows(id string, keys http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.id, f.keys = id, keys
}

// clock is a time that tests set.
type clock struct{ at atomic.Pointer[time.Time] }

func (c *clock) now() time.Time { return *c.at.Load() }
func (c *clock) add(d time.Duration) {
	t := c.now().Add(d)
	c.at.Store(&t)
}

func (f *forger) known() (*Provider, *clock) {
	f.t.Helper()
	ca := filepath.Join(f.t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		f.t.Fatal(err)
	}
	c := &clock{}
	c.at.Store(new(time.Now()))
	p, err := New(Config{Issuer: f.URL, ClientID: "heddle", NameClaim: "email", GroupsClaim: "groups",
		GroupsPrefix: "oidc:", CA: ca, Life: DefaultLife}, c.now)
	if err != nil {
		f.t.Fatal(err)
	}
	return p, c
}

// claims are those of a token that counts, with some others.
func (f *forger) claims(at time.Time, others map[string]any) map[string]any {
	all := map[string]any{"iss": f.URL, "aud": "heddle", "sub": "1", "email": "ann@example.com", "email_verified": true,
		"nonce": "n", "iat": at.Unix(), "exp": at.Add(time.Hour).Unix(), "groups": []string{"net", "sec"}}
	for k, v := range others {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	return all
}

func (f *forger) signed(alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	f.t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		f.t.Fatal(err)
	}
	j, err := s.Sign(text)
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := j.CompactSerialize()
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// ok is a token that counts but for some claims.
func (f *forger) ok(at time.Time, others map[string]any) string {
	f.t.Helper()
	return f.signed(jose.RS256, f.key, "k1", f.claims(at, others))
}

// unsigned is a token of the algorithm none.
func unsigned(claims map[string]any) string {
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(text) + "."
}

func TestWhoCountsAndWhoDoesNot(t *testing.T) {
	f := newForger(t)
	p, c := f.known()
	now, public := c.now(), x509.MarshalPKCS1PublicKey(&f.key.PublicKey)
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	many := make([]string, mostGroups+1)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	with := func(k string, v any) string { return f.ok(now, map[string]any{k: v}) }
	for name, c := range map[string]struct{ token, why string }{
		"a good one":                 {f.ok(now, nil), ""},
		"just expired, clocks apart": {with("exp", now.Add(-30*time.Second).Unix()), ""},
		"just made, clocks apart":    {with("iat", now.Add(30*time.Second).Unix()), ""},
		"for others as well":         {f.ok(now, map[string]any{"aud": []string{"heddle", "x"}, "azp": "heddle"}), ""},
		"of another issuer":          {with("iss", "https://evil.example"), "not of " + f.URL},
		"for another client":         {with("aud", "grafana"), "not for the client heddle"},
		"made for another":           {with("azp", "x"), "another client"},
		"for several, made for none": {with("aud", []string{"heddle", "x"}), "another client"},
		"expired":                    {with("exp", now.Add(-2*time.Minute).Unix()), "it ended at"},
		"without an end":             {with("exp", nil), "does not say when it ends"},
		"of an end that is no time":  {with("exp", 1e300), "does not say when it ends"},
		"without end in sight":       {with("exp", now.Add(1000*time.Hour).Unix()), "counts for more than"},
		"of the future":              {with("iat", now.Add(time.Hour).Unix()), "made in the future"},
		"not before":                 {with("nbf", now.Add(time.Hour).Unix()), "does not count yet"},
		"of another sign-in":         {with("nonce", "m"), "nonce"},
		"of none":                    {with("nonce", nil), "nonce"},
		"of alg none":                {unsigned(f.claims(now, nil)), "not signed by one of RS256"},
		"HS256 with the public key":  {f.signed(jose.HS256, pemKey, "k1", f.claims(now, nil)), "not signed by one of"},
		"HS256 with its DER form":    {f.signed(jose.HS256, public, "k1", f.claims(now, nil)), "not signed by one of"},
		"by another key":             {f.signed(jose.RS256, stranger, "k1", f.claims(now, nil)), "signed by a key"},
		"without a name":             {with("email", nil), "no name"},
		"of a name of two lines":     {with("email", "a\nb"), "no name"},
		"of a long name":             {with("email", strings.Repeat("a", 200)), "no name"},
		"of a name that hides":       {with("email", "a\u202eb"), "no name"},
		"of a name with blanks":      {with("email", " ann@example.com"), "no name"},
		"of root's name":             {with("email", "root"), "no name"},
		"of groups elsewhere": {f.ok(now, map[string]any{"groups": nil, "_claim_names": map[string]any{"groups": "s"},
			"_claim_sources": map[string]any{"s": map[string]any{"endpoint": "https://graph.example"}}}),
			"too many groups"},
		"of an unverified address": {with("email_verified", false), "verified"},
		"of too many groups":       {with("groups", many), "257 groups"},
		"of groups that are a map": {with("groups", map[string]any{"a": 1}), "no list"},
		"too long":                 {f.ok(now, nil) + strings.Repeat("A", longestToken), "longer than"},
		"nothing":                  {"", "no ID token"},
		"no token":                 {"a.b.c", "no ID token"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := p.Verify(t.Context(), c.token, "n")
			if c.why == "" {
				if err != nil || who.Name != "ann@example.com" || strings.Join(who.Groups, " ") != "oidc:net oidc:sec" {
					t.Errorf("%+v, %v", who, err)
				}
				return
			}
			var refused *TokenError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%+v, %v", who, err)
			}
			if parts := strings.Split(c.token, "."); err != nil && len(parts) == 3 && len(parts[1]) > 8 &&
				(strings.Contains(err.Error(), parts[1]) || strings.Contains(err.Error(), "eyJ")) {
				t.Error("the error quotes the token")
			}
		})
	}
}

// A provider changes its keys: the new one counts at once, the old one no longer than the keys are fresh.
func TestTheProviderChangesItsKeys(t *testing.T) {
	f := newForger(t)
	p, c := f.known()
	tries := func(key string) error {
		_, err := p.Verify(t.Context(), f.signed(jose.RS256, f.key, key, f.claims(c.now(), nil)), "n")
		return err
	}
	if err := tries("k1"); err != nil {
		t.Fatal(err)
	}
	f.shows("k2", nil)
	if err := tries("k2"); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if f.shows("k3", nil); tries("k2") != nil {
		t.Error("a key that was given a moment ago counts no more")
	}
	c.add(fresh + time.Second)
	if err := tries("k2"); err == nil {
		t.Error("a key counts that the provider withdrew long ago")
	}
	// Who names keys that do not exist does not make the controller flood the provider.
	for range 50 {
		if tries("nobody's") == nil {
			t.Fatal("a key of nobody's counts")
		}
	}
	if n := f.asked.Load(); n > askBurst {
		t.Errorf("the provider was asked %d times", n)
	}
}

// A provider that is away: its keys count for a day, and what is wrong is said.
func TestTheProviderIsAway(t *testing.T) {
	f := newForger(t)
	p, c := f.known()
	tries := func() error {
		_, err := p.Verify(t.Context(), f.ok(c.now(), nil), "n")
		return err
	}
	if err := tries(); err != nil || p.State().Fault != "" {
		t.Fatal(err, p.State())
	}
	f.shows("k1", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	c.add(fresh + time.Second)
	if err := tries(); err != nil || !strings.Contains(p.State().Fault, "502") {
		t.Errorf("without its keys: %v, %+v", err, p.State())
	}
	f.Close()
	c.add(fresh + time.Second)
	if err := tries(); err != nil || p.State().Fault == "" {
		t.Errorf("away: %v, %+v", err, p.State())
	}
	c.add(stale)
	var away *AwayError
	if err := tries(); !errors.As(err, &away) || !strings.Contains(err.Error(), f.URL) {
		t.Errorf("away for more than a day: %v", err)
	}
}

// endless writes until nobody reads, and counts.
func endless(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"keys":[`)
		for piece := []byte(strings.Repeat(" ", 64<<10)); sent.Load() < 1<<30; sent.Add(int64(len(piece))) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
}

// Keys of a gigabyte, and keys that never come, are not waited for.
func TestWhatAHostileProviderAnswersIsBounded(t *testing.T) {
	var sent atomic.Int64
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		keys http.HandlerFunc
		why  string
	}{
		"a gigabyte": {endless(&sent), "longer than"},
		"never":      {func(http.ResponseWriter, *http.Request) { <-hang }, "exceeded"},
		"no JSON":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "decode"},
		"plain http": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/keys", http.StatusFound)
		}, "https alone"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForger(t)
			f.shows("k1", c.keys)
			p, now := f.known()
			if name == "never" {
				p.client.Timeout = 300 * time.Millisecond // in place of 10 s
			}
			var away *AwayError
			_, err := p.Verify(t.Context(), f.ok(now.now(), nil), "n")
			if !errors.As(err, &away) || !strings.Contains(strings.ToLower(err.Error()), c.why) {
				t.Errorf("%v", err)
			}
			if name == "never" {
				close(hang)
			}
			if p.State().Fault == "" || len(p.State().Fault) > longestFault+3 {
				t.Errorf("%+v", p.State())
			}
		})
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes were sent before somebody stopped reading", n)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Issuer: "https://id.example/realm", ClientID: "heddle", NameClaim: "email", Life: time.Hour}
	for name, c := range map[string]struct {
		change func(*Config)
		why    string
	}{
		"good":      {func(*Config) {}, ""},
		"none":      {func(c *Config) { *c = Config{} }, ""},
		"http":      {func(c *Config) { c.Issuer = "http://id.example" }, "--oidc-issuer"},
		"a query":   {func(c *Config) { c.Issuer += "?a=b" }, "--oidc-issuer"},
		"discovery": {func(c *Config) { c.Issuer += "/.well-known/openid-configuration" }, "leave out"},
		"no client": {func(c *Config) { c.ClientID = "" }, "--oidc-client-id"},
		"no issuer": {func(c *Config) { c.Issuer = "" }, "--oidc-issuer"},
		"no name":   {func(c *Config) { c.NameClaim = "" }, "--oidc-name-claim"},
		"too short": {func(c *Config) { c.Life = time.Second }, "--oidc-session"},
		"too long":  {func(c *Config) { c.Life = 25 * time.Hour }, "--oidc-session"},
		"a prefix":  {func(c *Config) { c.GroupsPrefix = "a\n" }, "--oidc-groups-prefix"},
		"no CA":     {func(c *Config) { c.CA = "/nowhere" }, "--oidc-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := good
			c.change(&conf)
			_, err := New(conf, time.Now)
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v", err)
			}
		})
	}
}
