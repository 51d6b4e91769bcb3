package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/cmd/heddle/features"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/contexts"
	"heddle/internal/cli/signin"
	"heddle/internal/cli/tree"
	"heddle/internal/controller"
	"heddle/internal/identity"
	signing "heddle/internal/platform/access/signin"
	"heddle/internal/test/testkit/idp"
)

// lines is a writer that several may use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write takes in.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is a controller with an identity provider, and somebody's machine.
type world struct {
	t        *testing.T
	provider *idp.Provider
	fleet    *api.Fleet
	url, ca  string
	home     string
	log      lines
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, provider: idp.New(t), home: t.TempDir()}
	dir := t.TempDir()
	ready := make(chan struct{})
	o := controller.Options{Dir: filepath.Join(dir, "data"), Socket: filepath.Join(dir, "s"), Listen: free(t),
		API: free(t), ListenPeers: "none", Name: "signin17", Controller: "c1", PortLease: time.Minute,
		Log:   slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Ready: func() { close(ready) },
		SignIn: signing.Config{Issuer: w.provider.URL, ClientID: idp.ClientID, CA: w.provider.CA,
			NameClaim: "email", GroupsClaim: "groups", GroupsPrefix: "oidc:", Life: signing.ShortestLife,
			Scopes: []string{"email", "profile", "offline_access"}}}
	o.Advertise, w.url = o.Listen, "https://"+o.API
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the controller ended: %v\n%s", err, w.log.String())
	}
	w.fleet = api.NewFleet(o.Socket)
	trust, err := w.fleet.Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.ca = trust.Fingerprint
	return w
}

// run runs a command of the person's; act is called with what it says on standard error so far.
func (w *world) run(act func(string) bool, args ...string) (stdout, stderr string, status int) {
	w.t.Helper()
	var out, said lines
	d := cli.Deps{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said, Getenv: func(name string) string {
		return map[string]string{"HOME": w.home}[name]
	}}
	done := make(chan int, 1)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	go func() { done <- tree.Run(ctx, d, args, features.All()...) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case status = <-done:
			return out.String(), said.String(), status
		case <-tick.C:
			if act != nil && act(said.String()) {
				act = nil
			}
		}
	}
}

func (w *world) must(act func(string) bool, args ...string) string {
	w.t.Helper()
	out, said, status := w.run(act, args...)
	if status != 0 {
		w.t.Fatalf("heddle %v: %d\n%s%s\n%s", args, status, out, said, w.refusals())
	}
	return out
}

// refusals are the lines of the controller's log about them.
func (w *world) refusals() string {
	var list []string
	for l := range strings.Lines(w.log.String()) {
		if strings.Contains(l, "refused") {
			list = append(list, l)
		}
	}
	return strings.Join(list, "")
}

var (
	address = regexp.MustCompile(`https://\S+client_id=\S+`)
	typed   = regexp.MustCompile(`and type (\S+)`)
)

// person signs in by the address that a command shows.
func (w *world) person(said string) bool {
	at := address.FindString(said)
	if at == "" {
		return false
	}
	last, err := w.provider.Person(at)
	if err != nil || !strings.Contains(last, "You are signed in") {
		w.t.Errorf("the browser shows %q, %v", last, err)
	}
	return true
}

func (w *world) device(said string) bool {
	m := typed.FindStringSubmatch(said)
	if m == nil {
		return false
	}
	if err := w.provider.Device(m[1]); err != nil {
		w.t.Error(err)
	}
	return true
}

func (w *world) contexts() (*contexts.File, string) {
	w.t.Helper()
	path := filepath.Join(w.home, ".config/heddle/contexts.yaml")
	f, err := contexts.Load(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return f, path
}

// A person signs in with a browser, may do what is granted to their group, is renewed, and signs out.
func TestAPersonSignsInIsRenewedAndSignsOut(t *testing.T) {
	w := newWorld(t)
	out := w.must(w.person, "login", "lab", w.url, "--ca", w.ca, "--no-browser")
	for _, want := range []string{"context lab: you are " + idp.Email, "in oidc:" + idp.Group} {
		if !strings.Contains(out, want) {
			t.Errorf("login says no %q: %s", want, out)
		}
	}
	if _, said, status := w.run(nil, "host", "list"); status == 0 || !strings.Contains(said, "this needs viewer") {
		t.Errorf("without a grant: %d, %s", status, said)
	}
	if _, err := w.fleet.CreateGrant(t.Context(), api.Grantee{Kind: "group", Name: "oidc:" + idp.Group}, "admin",
		api.AccessScope{}); err != nil {
		t.Fatal(err)
	}
	var me api.WhoAmI
	if err := json.Unmarshal([]byte(w.must(nil, "access", "whoami", "-o", "json")), &me); err != nil {
		t.Fatal(err)
	}
	if me.Name != idp.Email || me.Issuer != w.provider.URL || !me.SignedIn || me.Role != "admin" {
		t.Errorf("I am %+v", me)
	}
	w.must(nil, "access", "group", "create", "shift", "--person", "ann")
	before := w.ageing()
	w.must(nil, "host", "list") // which renews
	after, path := w.contexts()
	now, _ := after.Get("lab")
	if now.Token == before.Token || time.Until(now.SignIn.Expires) < 4*time.Minute {
		t.Errorf("the sign-in was not renewed: it ends at %s", now.SignIn.Expires)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	w.provider.Away(true) // which changes nothing for who is signed in
	w.must(nil, "host", "list")
	if _, said, status := w.run(nil, "login", "--device"); status == 0 ||
		!strings.Contains(said, "identity provider "+w.provider.URL+" answers 503") {
		t.Errorf("with the provider away: %d, %s", status, said)
	}
	w.provider.Away(false)
	token := now.Token
	w.must(nil, "logout")
	if _, said, status := w.run(nil, "host", "list"); status == 0 || !strings.Contains(said, "heddle login lab") {
		t.Errorf("signed out: %d, %s", status, said)
	}
	w.refusedAfterwards(token)
	w.secretsStayOut(token, before.Token, now.SignIn.Refresh, before.SignIn.Refresh)
	w.recorded()
}

// ageing makes the sign-in look as if it ended soon, and returns what it was.
func (w *world) ageing() contexts.Context {
	w.t.Helper()
	f, _ := w.contexts()
	c, _ := f.Get("lab")
	had := *c
	c.SignIn = &contexts.SignIn{Expires: time.Now().Add(10 * time.Second), Refresh: had.SignIn.Refresh,
		Nonce: had.SignIn.Nonce}
	if err := f.Save(); err != nil {
		w.t.Fatal(err)
	}
	return had
}

// refusedAfterwards shows a token that was withdrawn.
func (w *world) refusedAfterwards(token string) {
	w.t.Helper()
	f, _ := w.contexts()
	c, _ := f.Get("lab")
	c.Token = token
	if err := f.Save(); err != nil {
		w.t.Fatal(err)
	}
	_, said, status := w.run(nil, "host", "list")
	if status == 0 || !strings.Contains(said, "unknown to this cluster, or was withdrawn") {
		w.t.Errorf("with the token of before: %d, %s", status, said)
	}
}

// secretsStayOut looks for secrets in the controller's log and in its audit log.
func (w *world) secretsStayOut(secrets ...string) {
	w.t.Helper()
	list, err := w.fleet.Audit(w.t.Context(), api.AuditQuery{Most: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		w.t.Fatal(err)
	}
	all := w.log.String() + string(text)
	for _, s := range append(secrets, "eyJ") { // which every JWT begins with
		if s == "" || strings.Contains(all, s) {
			w.t.Errorf("a log has a secret (%d bytes)", len(s))
		}
	}
}

// recorded looks for the person in the audit log.
func (w *world) recorded() {
	w.t.Helper()
	list, err := w.fleet.Audit(w.t.Context(), api.AuditQuery{Most: 1000, Who: idp.Email})
	if err != nil {
		w.t.Fatal(err)
	}
	calls := map[string]api.AuditEntry{}
	for _, e := range list.Entries {
		calls[e.Call] = e
	}
	for _, call := range []string{"SignIn", "PutGroup", "SignOut"} {
		e := calls[call]
		if e.Result != api.AuditDone || e.Issuer != w.provider.URL || strings.Join(e.Groups, " ") != "oidc:net-team" {
			w.t.Errorf("%s is recorded as %+v", call, e)
		}
	}
	if g := calls["PutGroup"].Grant; !strings.Contains(g, "group oidc:net-team") {
		w.t.Errorf("it was allowed by %q", g)
	}
}

// Who has no browser types a code into one elsewhere. What the provider gave counts once.
func TestAMachineWithoutABrowserAndATokenShownTwice(t *testing.T) {
	w := newWorld(t)
	if out := w.must(w.device, "login", "lab", w.url, "--ca", w.ca, "--device"); !strings.Contains(out, idp.Email) {
		t.Error(out)
	}
	if _, said, status := w.run(nil, "login", "lab", w.url, "--ca", strings.Repeat("0", 64)); status == 0 {
		t.Error("another cluster's controller was believed", said)
	}
	open := w.open()
	token, nonce := w.proved()
	if _, err := open.SignIn(t.Context(), token, "of another"); err == nil {
		t.Error("the answer to another sign-in counts")
	}
	if _, err := open.SignIn(t.Context(), token, nonce); err != nil {
		t.Fatal(err)
	}
	if _, err := open.SignIn(t.Context(), token, nonce); err == nil ||
		!strings.Contains(err.Error(), "counts once") {
		t.Errorf("shown twice: %v", err)
	}
}

// open is the controller for who has no token.
func (w *world) open() *api.Fleet {
	w.t.Helper()
	var fp identity.Fingerprint
	if err := fp.UnmarshalText([]byte(w.ca)); err != nil {
		w.t.Fatal(err)
	}
	return api.NewRemoteFleet(api.Remote{URL: w.url, TLS: identity.PinnedTLS(fp, identity.NewClock(time.Now))})
}

// proved has the person sign in at the provider.
func (w *world) proved() (idToken, nonce string) {
	w.t.Helper()
	terms, err := w.open().SignInTerms(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	p := signin.Provider{Issuer: terms.Issuer, ClientID: terms.ClientID, Scopes: terms.Scopes,
		AuthorizationURL: terms.AuthorizationURL, TokenURL: terms.TokenURL, CA: terms.CA}
	got, err := p.ByBrowser(w.t.Context(), 0, func(url string) error {
		go w.person(url)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got.IDToken, got.Nonce
}
