package keystore

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
)

// issuer issues certificates; what handshakes check about them does not matter here.
type issuer struct {
	t    *testing.T
	root *x509.Certificate
	key  identity.Key
	n    int64
}

func newIssuer(t *testing.T) *issuer {
	s := &issuer{t: t}
	s.key = s.must(identity.NewKey())
	s.root = s.sign(identity.Name{Cluster: "abc", Kind: identity.Authority}, s.key, true)
	return s
}

func (s *issuer) must(k identity.Key, err error) identity.Key {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

func (s *issuer) sign(n identity.Name, k identity.Key, ca bool) *x509.Certificate {
	s.t.Helper()
	s.n++
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(s.n), URIs: []*url.URL{n.URI()}, IsCA: ca,
		BasicConstraintsValid: true, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	parent := s.root
	if ca {
		parent = tmpl
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &k.PublicKey, s.key.PrivateKey)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// identity returns an identity of host h1 with that key.
func (s *issuer) identity(k identity.Key, controllers ...string) *Identity {
	s.t.Helper()
	return &Identity{Trust: identity.Trust{Cluster: "abc", Roots: []*x509.Certificate{s.root}}, Key: k,
		Certificate: s.sign(identity.Name{Cluster: "abc", Kind: identity.Host, ID: "h1"}, k, false),
		Display:     "esx one", Controllers: controllers}
}

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func same(a, b *Identity) bool {
	return a.Certificate.Equal(b.Certificate) && a.Key.Equal(b.Key.PrivateKey) && a.Trust.Cluster == b.Trust.Cluster &&
		slices.EqualFunc(a.Trust.Roots, b.Trust.Roots, (*x509.Certificate).Equal) &&
		a.Display == b.Display && slices.Equal(a.Controllers, b.Controllers)
}

// files returns the names of the files in the directory.
func files(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDir_FromJoiningToLeaving(t *testing.T) {
	s, path := newIssuer(t), filepath.Join(t.TempDir(), "identity")
	d := open(t, path)
	if _, err := d.Load(); !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	k := s.must(d.NextKey())
	if again := s.must(open(t, path).NextKey()); !again.Equal(k.PrivateKey) {
		t.Error("the key of a join that was broken off is not kept")
	}
	joined := s.identity(k, "https://c1", "https://c2")
	if err := d.Save(joined); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path).Load()
	if err != nil || !same(got, joined) {
		t.Fatal(got, err)
	}
	if names := files(t, path); len(names) != 2 {
		t.Error(names)
	}
	for _, name := range files(t, path) {
		if fi, err := os.Stat(filepath.Join(path, name)); err != nil || fi.Mode().Perm() != 0o600 {
			t.Error(name, fi.Mode(), err)
		}
	}
	// A crash before the key was removed from the file of the next one.
	text, err := k.PEM()
	if err != nil || ownfile.Replace(d.file(nextFile), text) != nil {
		t.Fatal(err)
	}
	next := s.must(d.NextKey())
	if next.Equal(k.PrivateKey) {
		t.Error("the key in use is the next one")
	}
	if got, err := d.Load(); err != nil || !same(got, joined) {
		t.Error("a renewal that has begun changes the identity:", err)
	}
	renewed := s.identity(next, "https://c3")
	if err := d.Save(renewed); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Load(); err != nil || !same(got, renewed) || len(files(t, path)) != 2 {
		t.Error(err, files(t, path))
	}
	if err := d.Forget(); err != nil || len(files(t, path)) != 0 {
		t.Error(err, files(t, path))
	}
	if _, err := d.Load(); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// The list of controllers changes, and the key's file is not written.
func TestDir_LeavesTheKeyAlone(t *testing.T) {
	s := newIssuer(t)
	d := open(t, filepath.Join(t.TempDir(), "identity"))
	i := s.identity(s.must(d.NextKey()), "https://c1")
	if err := d.Save(i); err != nil {
		t.Fatal(err)
	}
	var written []string
	replace := d.disk.replace
	d.disk.replace = func(path string, content []byte) error {
		written = append(written, filepath.Base(path))
		return replace(path, content)
	}
	i.Controllers = []string{"https://c2"}
	for range 2 {
		if err := d.Save(i); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(written, []string{identityFile}) {
		t.Error(written)
	}
}

// errCrash ends a process.
var errCrash = errors.New("crash")

// crashing returns a disk on which everything stops at the n-th change, which is done, not done, or left half-written
// in a temporary file.
func crashing(n int, how string) disk {
	d, real := disk{}, realDisk()
	at := func(do, half func() error) error {
		n--
		switch {
		case n < 0: // the process has ended
			return errCrash
		case n > 0:
			return do()
		case how == "done":
			return errors.Join(do(), errCrash)
		case how == "half":
			return errors.Join(half(), errCrash)
		}
		return errCrash
	}
	d.replace = func(path string, b []byte) error {
		return at(func() error { return real.replace(path, b) },
			func() error { return os.WriteFile(path+unfinished, b[:len(b)/2], 0o600) })
	}
	d.remove = func(path string) error {
		return at(func() error { return real.remove(path) }, func() error { return nil })
	}
	return d
}

// At whatever change the process ends, reading afterwards gives the identity before or after it, and repeating the
// operation completes it without leftovers.
func TestDir_SurvivesACrashAtAnyInstant(t *testing.T) {
	s := newIssuer(t)
	first, second := s.must(identity.NewKey()), s.must(identity.NewKey())
	old, renewed := s.identity(first, "https://c1"), s.identity(second, "https://c2")
	again := s.identity(first, "https://c2")
	setUp := func(t *testing.T, path string, joined bool) {
		t.Helper()
		d := open(t, path)
		if joined {
			if err := d.Save(old); err != nil {
				t.Fatal(err)
			}
		}
		next := map[bool]identity.Key{false: first, true: second}[joined]
		text, err := next.PEM()
		if err != nil {
			t.Fatal(err)
		}
		if err := ownfile.Replace(d.file(nextFile), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		what   string
		joined bool
		do     func(d *Dir) error
		after  *Identity // nil: no identity
	}{
		{"join", false, func(d *Dir) error { return d.Save(old) }, old},
		{"renew with a new key", true, func(d *Dir) error { return d.Save(renewed) }, renewed},
		{"renew with the same key", true, func(d *Dir) error { return d.Save(again) }, again},
		{"leave", true, (*Dir).Forget, nil},
	} {
		for _, how := range []string{"done", "not done", "half"} {
			t.Run(row.what+", "+how, func(t *testing.T) {
				for n := 1; ; n++ {
					path := filepath.Join(t.TempDir(), "identity")
					setUp(t, path, row.joined)
					before, _ := open(t, path).Load()
					d := open(t, path)
					d.disk = crashing(n, how)
					err := row.do(d)
					if err != nil && !errors.Is(err, errCrash) {
						t.Fatal(err)
					}
					d = open(t, path)
					got, lerr := d.Load()
					if !oneOf(got, lerr, before, row.after) {
						t.Fatalf("change %d: neither the one before nor the one after: %v", n, lerr)
					}
					if err := row.do(d); err != nil {
						t.Fatalf("change %d, once more: %v", n, err)
					}
					if got, lerr = d.Load(); !oneOf(got, lerr, row.after, row.after) {
						t.Fatalf("change %d, once more: %v", n, lerr)
					}
					checkKeys(t, d, row.after)
					if err == nil { // every change has had its crash
						if n < 2 {
							t.Fatal("no change was made")
						}
						return
					}
				}
			})
		}
	}
}

func oneOf(got *Identity, err error, a, b *Identity) bool {
	if errors.Is(err, ErrNone) {
		return a == nil || b == nil
	}
	return err == nil && (a != nil && same(got, a) || b != nil && same(got, b))
}

// checkKeys checks that there is no key that is not needed, and that the next key is not one in use.
func checkKeys(t *testing.T, d *Dir, i *Identity) {
	t.Helper()
	want := map[bool]int{true: 2, false: 0}[i != nil] // the identity and its key
	names := slices.DeleteFunc(files(t, d.path), func(n string) bool { return n == nextFile })
	if len(names) != want {
		t.Errorf("%q, want %d files", names, want)
	}
	next, err := d.NextKey()
	if err != nil || i != nil && next.Equal(i.Key.PrivateKey) {
		t.Error("the next key is the one in use", err)
	}
}

func TestDir_DamageIsFound(t *testing.T) {
	s, path := newIssuer(t), filepath.Join(t.TempDir(), "identity")
	d := open(t, path)
	i := s.identity(s.must(d.NextKey()), "https://c1")
	if err := d.Save(i); err != nil {
		t.Fatal(err)
	}
	good := map[string][]byte{}
	for _, name := range files(t, path) {
		b, err := os.ReadFile(d.file(name))
		if err != nil {
			t.Fatal(err)
		}
		good[name] = b
	}
	other, err := s.must(identity.NewKey()).PEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range good {
		bad := map[string][]byte{"empty": nil, "cut": text[:len(text)/2], "another's": other,
			"a digit": bytes.Replace(text, []byte("c1"), []byte("c2"), 1), "gone": []byte("-")}
		if name != identityFile {
			delete(bad, "a digit")
		}
		for what, content := range bad {
			t.Run(fmt.Sprintf("%.4s %s", name, what), func(t *testing.T) {
				err := os.WriteFile(d.file(name), content, 0o600)
				if what == "gone" {
					err = os.Remove(d.file(name))
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = d.Load()
				if name == identityFile && what == "gone" {
					if !errors.Is(err, ErrNone) {
						t.Error(err)
					}
				} else if err == nil || !strings.Contains(err.Error(), path) || errors.Is(err, ErrNone) {
					t.Error(err)
				}
				if err := os.WriteFile(d.file(name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	if got, err := d.Load(); err != nil || !same(got, i) {
		t.Fatal(err)
	}
}

func TestSave_RefusesWhatIsNoIdentity(t *testing.T) {
	s := newIssuer(t)
	d := open(t, filepath.Join(t.TempDir(), "identity"))
	good := s.identity(s.must(identity.NewKey()))
	for what, change := range map[string]func(i *Identity){
		"without a certificate": func(i *Identity) { i.Certificate = nil },
		"without a key":         func(i *Identity) { i.Key = identity.Key{} },
		"without a root":        func(i *Identity) { i.Trust.Roots = nil },
		"with another's key":    func(i *Identity) { i.Key = s.must(identity.NewKey()) },
		"of another cluster":    func(i *Identity) { i.Trust.Cluster = "xyz" },
	} {
		t.Run(what, func(t *testing.T) {
			bad := *good
			change(&bad)
			if err := d.Save(&bad); err == nil {
				t.Error("saved")
			}
			if _, err := d.Load(); !errors.Is(err, ErrNone) {
				t.Error(err)
			}
		})
	}
	// A document that names a file outside the directory reads no file there.
	for _, name := range []string{"../key-x.pem", "/etc/passwd", "key-../../x.pem", ""} {
		if _, err := d.key(name); err == nil || !strings.Contains(err.Error(), "no name of a key's file") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if _, err := ReadSecret(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	content := []byte("0123456789abcdef0123456789abcdef")
	for range 2 {
		if err := WriteSecret(path, content); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadSecret(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%x %v", got, err)
	}
	if err := WriteSecret(path, []byte("another")); err == nil {
		t.Error("a secret was replaced")
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecret(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
		t.Error(err)
	}
	for _, bad := range []string{"", "\n", "zz", "012"} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSecret(path); err == nil {
			t.Errorf("%q is read", bad)
		}
		if err := WriteSecret(path, content); err == nil {
			t.Errorf("%q was replaced", bad)
		}
	}
}
