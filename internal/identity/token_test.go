package identity

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func someRoot(t *testing.T) (f Fingerprint) {
	t.Helper()
	_, _ = rand.Read(f[:])
	return f
}

func TestTokens_AreReadAsTheyAreWritten(t *testing.T) {
	root := someRoot(t)
	for range 50 {
		join, api := NewJoinToken(root), NewAPIToken()
		for _, text := range []string{join.Text(), strings.ToUpper(join.Text()), "  " + join.Text() + "\n"} {
			got, err := ParseJoinToken(text)
			if err != nil || got.ID != join.ID || got.Root != root || got.Digest() != join.Digest() ||
				got.Text() != join.Text() {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if got, err := ParseAPIToken(api.Text()); err != nil || got.Digest() != api.Digest() || got.ID != api.ID {
			t.Fatalf("%q: %v", api.Text(), err)
		}
	}
	if join := NewJoinToken(root).Text(); len(join) > 102 || strings.ContainsAny(join, " \n=_-/+") {
		t.Errorf("%q is not one short word", join)
	}
}

// Every other sign in every place is found, and so is every shortened and doubled token.
func TestTokens_MistypedAreToldAsSuch(t *testing.T) {
	join, api := NewJoinToken(someRoot(t)), NewAPIToken()
	for _, c := range []struct {
		text  string
		parse func(string) error
	}{
		{join.Text(), func(s string) error { _, err := ParseJoinToken(s); return err }},
		{api.Text(), func(s string) error { _, err := ParseAPIToken(s); return err }},
	} {
		t.Run(c.text[:3], func(t *testing.T) {
			bad := []string{"", c.text[:3], c.text + c.text, c.text + "a", strings.Repeat("a", 1<<20),
				"hj1.\n\n\n\n\n\n\n\n." + c.text[13:],
				c.text[:13] + strings.Repeat("\n", len(c.text)-13),
				c.text[:20] + strings.Repeat("\n", 16) + c.text[36:],
				strings.ReplaceAll(c.text, ".", ":")}
			for i := range c.text {
				bad = append(bad, c.text[:i], c.text[:i]+c.text[i+1:], c.text[:i]+"\n"+c.text[i+1:],
					c.text[:i]+"é"+c.text[i+1:])
				if i > 0 && c.text[i] != c.text[i-1] {
					bad = append(bad, c.text[:i-1]+c.text[i:i+1]+c.text[i-1:i]+c.text[i+1:]) // transposed
				}
				for _, other := range "abcdefghijklmnopqrstuvwxyz234567" {
					if byte(other) != c.text[i] {
						bad = append(bad, c.text[:i]+string(other)+c.text[i+1:])
					}
				}
			}
			for _, text := range bad {
				if err := c.parse(text); !errors.Is(err, &TokenError{Fault: Mistyped}) {
					t.Fatalf("%.200q: %v", text, err)
				} else if len(err.Error()) > 300 {
					t.Fatalf("a long text is repeated in the error: %q", err)
				}
			}
		})
	}
	_, err := ParseJoinToken(api.Text())
	if err == nil || !strings.Contains(err.Error(), "for people and tools (ht1.…)") {
		t.Errorf("an API token for joining: %v", err)
	}
}

func TestTokens_AreShownWithoutTheirSecret(t *testing.T) {
	join, api := NewJoinToken(someRoot(t)), NewAPIToken()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{join.Text()[70:80], api.Text()[20:30], fmt.Sprintf("%x", join.raw()),
		fmt.Sprintf("%x", api.raw()),
		fmt.Sprint(join.raw()), fmt.Sprint(api.raw()), string(text[40:70]), key.D.String(), key.D.Text(16)}
	for _, v := range []any{join, &join, api, &api, key, []any{join}, struct{ T JoinToken }{join}, struct{ K Key }{key},
		struct{ S secret }{api.secret}, struct{ t JoinToken }{join}, struct{ k []Key }{[]Key{key}},
		struct{ a []APIToken }{[]APIToken{api}}} {
		var shown strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
		if !strings.Contains(fmt.Sprintf("%T", v), "Key") {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			shown.Write(b)
		}
		for _, s := range secrets {
			if strings.Contains(shown.String(), s) {
				t.Errorf("%T is shown with its secret: %s", v, shown.String())
			}
		}
	}
}

func TestTokens_DigestsDiffer(t *testing.T) {
	a := NewAPIToken()
	b := a
	b.ID = NewTokenID()
	if a.Digest() == b.Digest() {
		t.Error("the digest does not depend on the id: a secret could be used under another name")
	}
	if c := (JoinToken{ID: a.ID, secret: a.secret}); c.Digest() == a.Digest() {
		t.Error("the digest does not depend on the kind")
	}
}

// FuzzParseToken: whatever is read is written again as it was, and nothing else is read.
func FuzzParseToken(f *testing.F) {
	join, api := NewJoinToken(Fingerprint{1, 2, 3}), NewAPIToken()
	for _, s := range []string{join.Text(), api.Text(), "", "hj1.", "ht1..", join.Text()[:60],
		"\n" + api.Text() + " "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain := strings.ToLower(strings.TrimSpace(text))
		j, err := ParseJoinToken(text)
		if err == nil && j.Text() != plain {
			t.Errorf("%q is read as %q", text, j.Text())
		}
		a, apiErr := ParseAPIToken(text)
		if apiErr == nil && a.Text() != plain {
			t.Errorf("%q is read as %q", text, a.Text())
		}
		if err == nil && apiErr == nil {
			t.Errorf("%q is two tokens", text)
		}
		for _, err := range []error{err, apiErr} {
			if err != nil && !errors.Is(err, &TokenError{Fault: Mistyped}) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
