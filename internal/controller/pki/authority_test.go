package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
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
	moved.Issuing.Key, _ = c.secret.Seal(keyPurpose(c.Document.Cluster, c.trust.Roots[0]), []byte("x"))
	if _, err := moved.Open(c.secret); err == nil {
		t.Error("another cluster's key opens")
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

// Hosts and controllers of every age understand each other at each step, and each step may be made again.
func TestRotation_NobodyIsCutOff(t *testing.T) {
	c := newCluster(t, start())
	oldTrust := c.Trust()
	oldHost, oldCtl := c.host("h1", start()), c.controller("c1", start())
	token, record, err := c.NewJoinToken(JoinTerms{Life: day}, start())
	c.must(err)

	step := func(name string, make func(d *Document) (*Document, error)) {
		t.Helper()
		d, err := make(c.Document)
		c.must(err)
		c.take(d)
		again, err := make(c.Document)
		if err != nil || again != c.Document {
			t.Fatalf("%s again: %v", name, err)
		}
	}
	meets := func(what string, ctl party, host party, trust identity.Trust, want bool) {
		t.Helper()
		m := connect(t, c.server(ctl, start()).TLS(), clientOf(trust, host, clockAt(start(), time.Time{})).TLS())
		if m.ok() != want {
			t.Errorf("%s: %v %v", what, m.server, m.client)
		}
	}
	step("announce", func(d *Document) (*Document, error) { return d.Announce(c.secret, start()) })
	if len(c.Trust().Roots) != 2 || c.Fingerprint() != identity.FingerprintOf(oldTrust.Roots[0]) {
		t.Fatal("the new root issues before it is known")
	}
	meets("announced: old host", oldCtl, oldHost, oldTrust, true)
	meets("announced: old host that knows both", oldCtl, oldHost, c.Trust(), true)

	step("switch", func(d *Document) (*Document, error) { return d.Switch(start()) })
	if c.Document.Other.Key != nil {
		t.Error("the old root's key is still there")
	}
	if _, err := c.Document.Cancel(start()); err == nil {
		t.Error("cancelled after the switch")
	}
	newHost, newCtl := c.host("h2", start()), c.controller("c2", start())
	if c.Fingerprint() == identity.FingerprintOf(oldTrust.Roots[0]) {
		t.Fatal("the old root issues still")
	}
	meets("switched: old host, new controller", newCtl, oldHost, c.Trust(), true)
	meets("switched: a host that was away, new controller", newCtl, oldHost, oldTrust, true)
	meets("switched: new host, old controller", oldCtl, newHost, c.Trust(), true)
	srv := c.server(newCtl, start())
	if m := connect(t, srv.TLS(), identity.JoinTLS(token, clockAt(start(), time.Time{}))); !m.ok() {
		t.Error("a token from before the rotation:", m.client)
	}
	if _, err := c.Redeem(record, JoinRequest{Token: token}, "h3", start()); err != nil {
		t.Error(err)
	}

	step("finish", func(d *Document) (*Document, error) { return d.Finish(start()) })
	meets("finished: new and new", newCtl, newHost, c.Trust(), true)
	meets("finished: old host", newCtl, oldHost, c.Trust(), false)
	meets("finished: old controller", oldCtl, newHost, c.Trust(), false)
	meets("finished: a host that was away", newCtl, oldHost, oldTrust, false)
	if _, err := c.Redeem(record, JoinRequest{Token: token}, "h3", start()); !errors.Is(err,
		&identity.TokenError{Fault: identity.WrongCluster}) {
		t.Error(err)
	}
}

func TestRotation_StepsOutOfOrder(t *testing.T) {
	c := newCluster(t, start())
	if _, err := c.Document.Switch(start()); err == nil {
		t.Error("switched with nothing announced")
	}
	if d, err := c.Document.Finish(start()); err != nil || d != c.Document {
		t.Error("finish changes what is steady:", err)
	}
	d, err := c.Document.Announce(c.secret, start())
	c.must(err)
	if _, err := d.Finish(start()); err == nil {
		t.Error("finished before the switch")
	}
	if back, err := d.Cancel(start()); err != nil || back.Stage != Steady || back.Other != nil || back.Link != nil {
		t.Errorf("%+v %v", back, err)
	}
}

func TestRotation_Waiting(t *testing.T) {
	c := newCluster(t, start())
	old := c.Fingerprint()
	name := identity.Name{Cluster: c.Document.Cluster, Kind: identity.Host, ID: "h1"}
	if w, err := c.Document.Waiting([]Holder{{Name: name}}); err != nil || len(w) != 0 {
		t.Error(w, err)
	}
	d, err := c.Document.Announce(c.secret, start())
	c.must(err)
	roots, err := d.roots()
	c.must(err)
	next := identity.FingerprintOf(roots[1])
	for _, row := range []struct {
		what string
		at   func() (*Document, error)
		h    Holder
		late bool
	}{
		{"does not know the next root", func() (*Document, error) { return d, nil },
			Holder{name, old, []identity.Fingerprint{old}}, true},
		{"knows it", func() (*Document, error) { return d, nil },
			Holder{name, old, []identity.Fingerprint{old, next}}, false},
		{"has a certificate of the old one", func() (*Document, error) { return d.Switch(start()) },
			Holder{name, old, []identity.Fingerprint{old, next}}, true},
		{"has a new one", func() (*Document, error) { return d.Switch(start()) },
			Holder{name, next, []identity.Fingerprint{old, next}}, false},
	} {
		t.Run(row.what, func(t *testing.T) {
			at, err := row.at()
			c.must(err)
			if w, err := at.Waiting([]Holder{row.h}); err != nil || (len(w) == 1) != row.late {
				t.Error(w, err)
			}
		})
	}
}

func TestReseal(t *testing.T) {
	c := newCluster(t, start())
	d, err := c.Document.Announce(c.secret, start())
	c.must(err)
	to := NewSecret()
	for range 2 { // the second time after a crash
		d, err = d.Reseal(c.secret, to, start())
		c.must(err)
		if _, err := d.Open(c.secret); !errors.Is(err, ErrSecret) {
			t.Error("the old secret opens:", err)
		}
		if _, err := d.Open(to); err != nil {
			t.Error(err)
		}
	}
	switched, err := d.Switch(start())
	c.must(err)
	if _, err := switched.Open(to); err != nil {
		t.Error("the next root's key was not sealed anew:", err)
	}
}

// What a host's certificate says comes from the controller, and is no more than it has to be.
func TestACertificateSpeaksForItsHostAlone(t *testing.T) {
	c := newCluster(t, start())
	h := c.host("h1", start())
	name, err := identity.NameOf(h.cert)
	if err != nil || name.String() != "heddle://"+string(c.Document.Cluster)+"/host/h1" {
		t.Errorf("%v %v", name, err)
	}
	if len(h.cert.DNSNames)+len(h.cert.IPAddresses)+len(h.cert.EmailAddresses) > 0 || h.cert.IsCA ||
		len(h.cert.ExtKeyUsage) != 1 || h.cert.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth ||
		!h.cert.NotAfter.Equal(start().Add(CertificateLife)) || h.cert.Subject.CommonName != "host h1" {
		t.Errorf("%+v", h.cert)
	}
	ctl := c.controller("c1", start())
	if ctl.cert.VerifyHostname("10.0.0.1") != nil || ctl.cert.VerifyHostname("ctl.example") != nil ||
		ctl.cert.VerifyHostname(ControllerDNS(c.Document.Cluster)) != nil {
		t.Error("a controller's certificate lacks its addresses")
	}
	for _, id := range []string{"", "H1", "h1/../c1", "a b", "-a", "a-", strings.Repeat("a", 64), "h\x00", "é"} {
		_, r := c.request()
		if _, err := c.IssueHost(r, Subject{ID: id}, start()); err == nil {
			t.Errorf("a certificate for %q", id)
		}
	}
	_, r := c.request()
	if _, err := c.IssueHost(r, Subject{ID: "h1", Addresses: []string{"10.0.0.1"}}, start()); err == nil {
		t.Error("a host's certificate with an address")
	}
}

func TestRequestsThatAskForMoreAreRefused(t *testing.T) {
	c := newCluster(t, start())
	key, good := c.request()
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	c.must(err)
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	c.must(err)
	uri, err := url.Parse("heddle://x/controller/c1")
	c.must(err)
	of := func(r x509.CertificateRequest, k any) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &r, k)
		c.must(err)
		return der
	}
	unsigned := bytes.Clone(good)
	unsigned[len(unsigned)-1] ^= 1
	for what, der := range map[string][]byte{
		"nothing": nil, "rubbish": []byte("x"), "truncated": good[:len(good)-3], "more after it": append(good, 0),
		"too long":       make([]byte, maxRequest+1),
		"another curve":  of(x509.CertificateRequest{}, p384),
		"RSA":            of(x509.CertificateRequest{}, small),
		"a subject":      of(x509.CertificateRequest{Subject: pkix.Name{CommonName: "c1"}}, key.PrivateKey),
		"a DNS name":     of(x509.CertificateRequest{DNSNames: []string{"c1"}}, key.PrivateKey),
		"another's name": of(x509.CertificateRequest{URIs: []*url.URL{uri}}, key.PrivateKey),
		"an extension": of(x509.CertificateRequest{ExtraExtensions: []pkix.Extension{{
			Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}}, key.PrivateKey),
		"a wrong signature": unsigned,
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := c.IssueHost(der, Subject{ID: "h1"}, start()); err == nil {
				t.Error("issued")
			}
		})
	}
}

// Nothing counts longer than the root that signed it.
func TestIssue_EndsWithItsRoot(t *testing.T) {
	c := newCluster(t, start())
	end := c.trust.Roots[0].NotAfter
	h := c.host("h1", end.Add(-day))
	if !h.cert.NotAfter.Equal(end) {
		t.Error(h.cert.NotAfter)
	}
	_, r := c.request()
	if _, err := c.IssueHost(r, Subject{ID: "h1"}, end); err == nil || !strings.Contains(err.Error(), "rotate") {
		t.Error(err)
	}
	// A root that has expired is trusted no more, also not for a renewal.
	srv := c.server(c.controller("c1", end.Add(-day)), end.Add(day))
	if m := connect(t, srv.TLS(), c.client(h, end.Add(-day)).TLS()); !errors.Is(m.server,
		&identity.PeerError{Fault: identity.Foreign}) {
		t.Error(m.server)
	}
}

// What a host may do whose certificate has expired: renew it, with its own key.
func TestRenewalOfAnExpiredCertificate(t *testing.T) {
	c := newCluster(t, start())
	h := c.host("h1", start())
	own, err := h.key.Request()
	c.must(err)
	_, foreign := c.request()
	for _, row := range []struct {
		what    string
		now     time.Time
		request []byte
		id      string
		ok      bool
	}{
		{"in time, its key", start().Add(60 * day), own, "h1", true},
		{"in time, a new key", start().Add(60 * day), foreign, "h1", true},
		{"in time, another host", start().Add(60 * day), own, "h2", false},
		{"expired, its key", start().Add(179 * day), own, "h1", true},
		{"expired, a new key", start().Add(179 * day), foreign, "h1", false},
		{"expired, another host", start().Add(179 * day), own, "h2", false},
	} {
		t.Run(row.what, func(t *testing.T) {
			srv := c.server(c.controller("c1", row.now), row.now)
			// The host has no time at all.
			m := connect(t, srv.TLS(), c.client(h, time.Unix(0, 0)).TLS())
			p, err := srv.Peer(m.at)
			if !m.ok() || err != nil || p.RenewOnly != row.now.After(h.cert.NotAfter) {
				t.Fatalf("%v %v %v %+v", m.server, m.client, err, p)
			}
			i, err := c.Renew(p, row.request, Subject{ID: row.id}, row.now)
			if (err == nil) != row.ok {
				t.Fatal(err)
			}
			if row.ok {
				renewed := party{h.key, i.Certificate}
				if bytes.Equal(row.request, own) {
					m = connect(t, srv.TLS(), c.client(renewed, row.now).TLS())
					if p, err := srv.Peer(m.at); err != nil || p.RenewOnly {
						t.Errorf("%+v %v", p, err)
					}
				}
			}
		})
	}
	ctl := c.controller("c9", start())
	p := &identity.Peer{Name: identity.Name{Cluster: c.Document.Cluster, Kind: identity.Controller, ID: "c9"},
		Certificate: ctl.cert}
	if _, err := c.Renew(p, own, Subject{ID: "c9"}, start()); err == nil {
		t.Error("a controller is renewed as a host")
	}
}
