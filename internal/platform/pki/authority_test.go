package pki

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestDocument_HasNoSecretInIt(t *testing.T) {
	c := newCluster(t, start())
	text, err := c.Document.Encode()
	c.must(err)
	for what, secret := range map[string][]byte{"key": c.key.D.Bytes(), "secret": c.secret.Content(),
		"PEM": []byte("PRIVATE")} {
		if bytes.Contains(text, secret) || bytes.Contains(c.Document.Issuing.Key.Text, secret) {
			t.Errorf("the %s is readable in the document", what)
		}
	}
	if _, err := c.Document.Open(NewSecret()); !errors.Is(err, ErrSecret) {
		t.Errorf("opened with another secret: %v", err)
	}
	if _, err := c.Document.Open(Secret{}); err == nil {
		t.Error("opened without a secret")
	}
	for _, v := range []any{c.secret, struct{ s Secret }{c.secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			shown := fmt.Sprintf(verb, v)
			if strings.Contains(shown, fmt.Sprintf("%x", c.secret.Content())) ||
				strings.Contains(shown, strings.Trim(fmt.Sprint(c.secret.Content()), "[]")) {
				t.Errorf("%s shows the secret: %s", verb, shown)
			}
		}
	}
}

// Each flipped byte of what was sealed is found, and a key does not open in another one's place.
func TestDocument_DamageIsFound(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	sealed := c.Document.Issuing.Key
	for name, field := range map[string]*[]byte{"by": &sealed.By, "nonce": &sealed.Nonce, "text": &sealed.Text} {
		for i := range *field {
			(*field)[i] ^= 1
			if _, err := c.Document.Open(c.secret); err == nil {
				t.Errorf("byte %d of %s is flipped, and the key opens", i, name)
			}
			(*field)[i] ^= 1
		}
	}
	sealed.Nonce = nil
	if _, err := c.Document.Open(c.secret); err == nil {
		t.Error("opened without a nonce")
	}
	moved := other.Document.clone()
	var err error
	moved.Issuing.Key, err = c.secret.Seal(keyPurpose(c.Document.Cluster, c.trust.Roots[0]), []byte("x"))
	c.must(err)
	if _, err := moved.Open(c.secret); err == nil {
		t.Error("another cluster's key opens")
	}
	wrong, _ := c.request()
	moved = c.Document.clone()
	moved.Issuing.Key, err = sealKey(c.Document.Cluster, c.trust.Roots[0], wrong, c.secret)
	if _, openErr := moved.Open(c.secret); err != nil || openErr == nil {
		t.Error("a key opens that is not the root's:", err)
	}
	_, err = Decode([]byte(strings.Replace(mustText(t, c), `"format":1`, `"format":2`, 1)))
	if err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Error("a newer format:", err)
	}
	for _, text := range []string{"", "{}", "null", `{"format":1,"stage":"steady"}`, `{"format":99}`,
		strings.Replace(mustText(t, c), "steady", "switched", 1),
		strings.Replace(mustText(t, c), string(c.Document.Cluster), "elsewhere", 1)} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%.60q is read", text)
		}
	}
}

func mustText(t *testing.T, c *cluster) string {
	t.Helper()
	text, err := c.Document.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A newer controller's fields survive that an older one writes the document.
func TestDocument_KeepsWhatItDoesNotKnow(t *testing.T) {
	c := newCluster(t, start())
	text := strings.Replace(mustText(t, c), "{", `{"quantum":{"roots":[1,2]},`, 1)
	d, err := Decode([]byte(text))
	c.must(err)
	d, err = d.Announce(c.secret, start())
	c.must(err)
	c.take(d)
	var got struct {
		Quantum struct{ Roots []int }
		Stage   Stage
	}
	c.must(json.Unmarshal([]byte(mustText(t, c)), &got))
	if len(got.Quantum.Roots) != 2 || got.Stage != Announced {
		t.Errorf("%+v", got)
	}
}
