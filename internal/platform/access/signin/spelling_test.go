package signin

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An ID token has one mark, in whatever way it is written, or is refused: it counts once.
func TestS138_AnIDTokenIsOneHoweverItIsWritten(t *testing.T) {
	f := newForger(t)
	p, c := f.known()
	token := f.ok(c.now(), nil)
	who, err := p.Verify(t.Context(), token, "n")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	last := token[len(token)-1]
	for name, written := range map[string]string{
		"a line feed after it":         token + "\n",
		"line feeds in it":             parts[0] + ".\n" + parts[1] + "." + parts[2],
		"a carriage return in front":   "\r" + token,
		"a blank after it":             token + " ",
		"padding":                      token + "=",
		"other bits that nobody reads": token[:len(token)-1] + string(spare(t, last)),
		"a part more":                  token + ".",
	} {
		t.Run(name, func(t *testing.T) {
			again, err := p.Verify(t.Context(), written, "n")
			if err == nil && again.Token != who.Token {
				t.Error("it counts as another token")
			}
		})
	}
	if mark(f.URL, "a.b.c") != mark(f.URL, "a.b.d") { // an ECDSA signature with the other sign
		t.Error("the signature makes another mark")
	}
	if mark(f.URL, "a.b.c") == mark(f.URL, "a.d.c") || mark(f.URL, "a.b.c") == mark("https://other", "a.b.c") {
		t.Error("another token has the same mark")
	}
}

// spare is another last character of a text in base64 with the same meaning.
func spare(t *testing.T, last byte) byte {
	t.Helper()
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for _, other := range []byte(all) {
		a, _ := base64.RawURLEncoding.DecodeString("A" + string(last))
		b, _ := base64.RawURLEncoding.DecodeString("A" + string(other))
		if other != last && string(a) == string(b) {
			return other
		}
	}
	t.Fatal("the last character has no bits that nobody reads")
	return 0
}

// What everybody is told of the file with the provider's authorities are their certificates, and a file with a key is
// refused.
func TestS139_NothingButCertificatesIsPublished(t *testing.T) {
	f := newForger(t)
	key, err := x509.MarshalPKCS8PrivateKey(f.key)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
	private := func(kind string) string { return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: key})) }
	for name, c := range map[string]struct{ text, want string }{
		"certificates":       {cert + cert, ""},
		"words beside them":  {"the password is 1234\n" + cert + "secret", ""},
		"a key after it":     {cert + private("PRIVATE KEY"), "PRIVATE KEY"},
		"a key before it":    {private("RSA PRIVATE KEY") + cert, "PRIVATE KEY"},
		"an encrypted key":   {cert + private("ENCRYPTED PRIVATE KEY"), "PRIVATE KEY"},
		"a key alone":        {private("EC PRIVATE KEY"), "PRIVATE KEY"},
		"other blocks":       {private("PUBLIC KEY"), "PUBLIC KEY"},
		"nothing":            {"", "no certificate"},
		"a damaged document": {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, published, err := newClient(ca)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it is taken: %v", err)
				}
				return
			}
			if err != nil || strings.ReplaceAll(published, cert, "") != "" {
				t.Errorf("published: %s, %v", published, err)
			}
		})
	}
}
