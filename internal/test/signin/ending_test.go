package signin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli/contexts"
	"heddle/internal/test/testkit/idp"
)

// copied is a copy of the person's file of contexts, in the home of somebody else, with a sign-in that is to be
// renewed.
func (w *world) copied() (home string) {
	w.t.Helper()
	f, path := w.contexts()
	home = w.t.TempDir()
	to := filepath.Join(home, ".config/heddle/contexts.yaml")
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if c, _ := f.Get("lab"); c.SignIn.Refresh == "" {
		w.t.Fatal("the provider gave nothing that renews")
	}
	return home
}

// as runs a command with another home; ended says that the sign-in's time is over.
func (w *world) as(home string, ended bool, args ...string) (said string, status int) {
	w.t.Helper()
	own := w.home
	w.home = home
	defer func() { w.home = own }()
	if ended {
		w.expired()
	}
	_, said, status = w.run(nil, args...)
	return said, status
}

// expired makes the sign-in look as if its time were over.
func (w *world) expired() {
	w.t.Helper()
	f, _ := w.contexts()
	c, _ := f.Get("lab")
	c.SignIn = &contexts.SignIn{Expires: time.Now().Add(-time.Minute), Refresh: c.SignIn.Refresh, Nonce: c.SignIn.Nonce}
	if err := f.Save(); err != nil {
		w.t.Fatal(err)
	}
}

// Who signs out, or in again, has ended what was there before: a copy of the file is worth nothing, at the controllers
// and at the provider.
func TestS140_ACopyOfASignInEndsWithIt(t *testing.T) {
	w := newWorld(t)
	login := []string{"login", "lab", w.url, "--ca", w.ca, "--no-browser"}
	var asked string
	if out := w.must(func(said string) bool {
		asked = said
		return w.person(said)
	}, login...); strings.Contains(out, "can't be renewed") {
		t.Errorf("login says %s", out)
	}
	if !strings.Contains(asked, "prompt=consent") {
		t.Errorf("consent is not asked for: %s", asked)
	}
	first := w.copied()
	w.must(w.person, "login", "lab", "--no-browser")
	second := w.copied()
	w.must(nil, "access", "whoami")
	if out := w.must(nil, "logout"); strings.Contains(out, "takes nothing back") {
		t.Errorf("logout says %s", out)
	}
	for name, home := range map[string]string{"before the second login": first, "before the logout": second} {
		t.Run(name, func(t *testing.T) {
			if said, status := w.as(home, false, "access", "whoami"); status == 0 {
				t.Errorf("its token counts: %s", said)
			}
			said, status := w.as(home, true, "access", "whoami")
			if status == 0 || !strings.Contains(said, "identity provider "+w.provider.URL+" refuses") {
				t.Errorf("it is renewed: %d, %s", status, said)
			}
		})
	}
}

// A provider that is away when a sign-in is to be renewed is named, and not the controllers, which answer.
func TestARenewalThatFailsNamesTheProvider(t *testing.T) {
	w := newWorld(t)
	w.must(w.person, "login", "lab", w.url, "--ca", w.ca, "--no-browser")
	w.expired()
	w.provider.Away(true)
	_, said, status := w.run(nil, "access", "whoami")
	if status == 0 || !strings.Contains(said, "your sign-in has ended, and could not be renewed: the identity "+
		"provider "+w.provider.URL+" answers 503") || strings.Contains(said, "controller") {
		t.Errorf("it says %d, %s", status, said)
	}
	out, said, status := w.run(nil, "logout")
	if status == 0 || !strings.Contains(out, "you are signed out") || !strings.Contains(said, "was not taken back") {
		t.Errorf("logout with the provider away says %d, %s%s", status, out, said)
	}
}

// Who shows an ID token again and again is refused without a line in the log of changes.
func TestS137_AReplayedIDTokenLeavesNoChanges(t *testing.T) {
	w := newWorld(t)
	token, nonce := w.proved()
	if _, err := w.open().SignIn(t.Context(), token, nonce); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		for _, written := range []string{token, token + "\n", "\n" + token} {
			if _, err := w.open().SignIn(t.Context(), written, nonce); err == nil {
				t.Fatalf("%q counts again", strings.ReplaceAll(written, token, "TOKEN"))
			}
		}
	}
	list, err := w.fleet.Audit(t.Context(), api.AuditQuery{Most: 1000, Call: "SignIn"})
	if err != nil {
		t.Fatal(err)
	}
	by := map[api.AuditResult]int{}
	for _, e := range list.Entries {
		by[e.Result]++
	}
	if by[api.AuditDone] != 1 || by[api.AuditRefused] == 0 || by[api.AuditRefused] > 40 || len(by) != 2 {
		t.Errorf("of %s is recorded %v", idp.Email, by)
	}
}
