package identity

import (
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"testing"
	"time"
)

// signed makes a certificate of a key with itself.
func signed(t *testing.T, tmpl x509.Certificate) *x509.Certificate {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if tmpl.SerialNumber == nil {
		tmpl.SerialNumber = big.NewInt(1)
	}
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, &key.PublicKey, key.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNames(t *testing.T) {
	for text, want := range map[string]Name{
		"heddle://abc/ca":                {"abc", Authority, ""},
		"heddle://abc/controller/c1":     {"abc", Controller, "c1"},
		"heddle://abc/host/h-1":          {"abc", Host, "h-1"},
		"heddle://abc/host/":             {},
		"heddle://abc/host":              {},
		"heddle://abc/ca/x":              {},
		"heddle://abc/host/h1/":          {},
		"heddle://abc/host/h1/x":         {},
		"heddle://abc/host/h%31":         {},
		"heddle://abc:80/host/h1":        {},
		"heddle://u@abc/host/h1":         {},
		"heddle://abc/host/h1?x=1":       {},
		"heddle://abc/host/h1#x":         {},
		"heddle://ABC/host/h1":           {},
		"heddle:///host/h1":              {},
		"heddle:abc/host/h1":             {},
		"https://abc/host/h1":            {},
		"heddle://abc/admin/h1":          {},
		"heddle://abc//host/h1":          {},
		"heddle://abc/host/../ca":        {},
		"heddle://abc/controller/c1/../": {},
	} {
		t.Run(text, func(t *testing.T) {
			uri, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := NameOf(&x509.Certificate{URIs: []*url.URL{uri}})
			if got != want || (err == nil) != (want != Name{}) {
				t.Errorf("%+v %v", got, err)
			}
			if err == nil && got.String() != text {
				t.Errorf("%s", got)
			}
		})
	}
	n := Name{"abc", Host, "h1"}
	for _, uris := range [][]*url.URL{nil, {n.URI(), n.URI()}} {
		if _, err := NameOf(&x509.Certificate{URIs: uris}); err == nil {
			t.Errorf("%d names are taken for one", len(uris))
		}
	}
	if a, b := NewClusterID(), NewClusterID(); a == b || CheckID("", string(a)) != nil {
		t.Error(a, b)
	}
}

func TestFingerprint_IsReadAsItIsWritten(t *testing.T) {
	f := someRoot(t)
	text, err := f.MarshalText()
	var got Fingerprint
	if err != nil || got.UnmarshalText(text) != nil || !got.Equal(f) {
		t.Errorf("%s %s", f, got)
	}
	for _, bad := range []string{"", "zz", string(text[2:]), string(text) + "00"} {
		if got.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestKeysAndCertificates_AreReadAsTheyAreWritten(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseKey(text)
	if err != nil || !got.Equal(key.PrivateKey) {
		t.Error(err)
	}
	a, b := signed(t, x509.Certificate{}), signed(t, x509.Certificate{})
	certs := PEMOf(a, b)
	list, err := ParseCerts(certs)
	if err != nil || len(list) != 2 || !list[0].Equal(a) || !list[1].Equal(b) {
		t.Error(list, err)
	}
	for i, bad := range [][]byte{nil, text[:len(text)/2], append(text, text...), certs} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%d is read as a key", i)
		}
	}
	many := make([]*x509.Certificate, maxCerts+1)
	for i := range many {
		many[i] = a
	}
	for i, bad := range [][]byte{text, []byte("x"), append(certs, 'x'), certs[:len(certs)-9], PEMOf(many...)} {
		if _, err := ParseCerts(bad); err == nil {
			t.Errorf("%d is read as certificates", i)
		}
	}
}

func TestClock(t *testing.T) {
	made := time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)
	own := signed(t, x509.Certificate{NotBefore: made.Add(-Backdate), NotAfter: made.Add(24 * time.Hour)})
	later := signed(t, x509.Certificate{NotBefore: made.AddDate(0, 1, 0), NotAfter: made.AddDate(1, 0, 0)})
	now := time.Unix(0, 0)
	c := NewClock(func() time.Time { return now }, nil, own)
	if !c.Wrong() || !c.Time().Equal(made) || !c.For(own).Equal(made) || !c.For(later).Equal(later.NotBefore) {
		t.Error(c.Wrong(), c.Time(), c.For(own), c.For(later))
	}
	now = made.AddDate(0, 2, 0)
	if c.Wrong() || !c.Time().Equal(now) || !c.For(later).Equal(now) {
		t.Error(c.Wrong(), c.Time(), c.For(later))
	}
	if c := NewClock(time.Now); c.Floor.Year() < 2026 {
		t.Error("the time of the build is not known:", c.Floor)
	}
}

// Certificates of a fleet are renewed when at least a third of their life is left, and not all at once.
func TestRenewAt(t *testing.T) {
	made := time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)
	const life = 90 * 24 * time.Hour
	days := map[int]int{}
	tmpl := x509.Certificate{NotBefore: made.Add(-Backdate), NotAfter: made.Add(life)}
	for i := range int64(3000) {
		tmpl.SerialNumber = big.NewInt(i + 1)
		at := RenewAt(&tmpl)
		if at.Before(made.Add(life*6/10)) || at.After(made.Add(life*2/3)) || !at.Equal(RenewAt(&tmpl)) {
			t.Fatal(i, at)
		}
		days[int(at.Sub(made)/(24*time.Hour))]++
	}
	for d := 54; d < 60; d++ {
		if days[d] < 400 {
			t.Errorf("day %d: %d of 3000", d, days[d])
		}
	}
	c := signed(t, tmpl)
	for what, row := range map[string]struct {
		root     *x509.Certificate
		outdated bool
	}{
		"its root issues":     {&x509.Certificate{SubjectKeyId: c.AuthorityKeyId}, false},
		"another root issues": {&x509.Certificate{SubjectKeyId: []byte{1}}, true},
	} {
		t.Run(what, func(t *testing.T) {
			if got := (&Trust{Roots: []*x509.Certificate{row.root}}).Outdated(c); got != row.outdated {
				t.Error(got)
			}
		})
	}
}
