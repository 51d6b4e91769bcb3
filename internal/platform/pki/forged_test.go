package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net/url"
	"testing"
	"time"

	"heddle/internal/identity"
)

// forge signs with the cluster's own root what it would never issue: what counts is not the signature alone.
func (c *cluster) forge(key crypto.Signer, kind identity.Kind, change func(*x509.Certificate)) *x509.Certificate {
	c.t.Helper()
	tmpl, err := c.template(kind, Subject{ID: "x1"}, start())
	c.must(err)
	change(tmpl)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, c.trust.Roots[0], key.Public(), c.key.PrivateKey)
	c.must(err)
	cert, err := x509.ParseCertificate(der)
	c.must(err)
	return cert
}

func TestTrust_RefusesWhatTheAuthorityWouldNotIssue(t *testing.T) {
	c := newCluster(t, start())
	key, _ := c.request()
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	c.must(err)
	named := func(text string) func(*x509.Certificate) {
		uri, err := url.Parse(text)
		c.must(err)
		return func(x *x509.Certificate) { x.URIs = []*url.URL{uri} }
	}
	for _, row := range []struct {
		what   string
		key    crypto.Signer
		kind   identity.Kind
		change func(*x509.Certificate)
		want   identity.PeerFault // 0: in order
	}{
		{"unchanged", key, identity.Host, func(*x509.Certificate) {}, 0},
		{"unchanged", key, identity.Controller, func(*x509.Certificate) {}, 0},
		{"another cluster's name", key, identity.Host, named("heddle://other/host/x1"), identity.Foreign},
		{"an authority's name", key, identity.Host, named("heddle://" + string(c.Document.Cluster) + "/ca"),
			identity.OtherKind},
		{"no name", key, identity.Host, func(x *x509.Certificate) { x.URIs = nil }, identity.Malformed},
		{"another curve", p384, identity.Host, func(*x509.Certificate) {}, identity.Malformed},
		{"an authority's powers", key, identity.Host, func(x *x509.Certificate) {
			x.IsCA, x.KeyUsage = true, x509.KeyUsageCertSign
		}, identity.Malformed},
		{"a host that is for servers", key, identity.Host, func(x *x509.Certificate) {
			x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}, identity.Foreign},
		{"a controller that is for clients only", key, identity.Controller, func(x *x509.Certificate) {
			x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}, identity.Foreign},
	} {
		t.Run(row.kind.String()+" with "+row.what, func(t *testing.T) {
			shown := []*x509.Certificate{c.forge(row.key, row.kind, row.change)}
			trust := c.Trust()
			var err error
			if row.kind == identity.Controller {
				_, err = trust.Controller(shown, clockAt(start(), time.Time{}))
			} else {
				_, err = trust.Client(shown, start(), Grace)
			}
			if row.want == 0 && err != nil || row.want != 0 && !errors.Is(err, &identity.PeerError{Fault: row.want}) {
				t.Error(err)
			}
		})
	}
	many := make([]*x509.Certificate, 10)
	for i := range many {
		many[i] = c.host("h1", start()).cert
	}
	trust := c.Trust()
	if _, err := trust.Client(many, start(), Grace); !errors.Is(err, &identity.PeerError{Fault: identity.Malformed}) {
		t.Error("ten certificates:", err)
	}
}

// A token whose fingerprint is that of something else than a cluster's root leads nowhere.
func TestPinned_IsAnAuthority(t *testing.T) {
	c := newCluster(t, start())
	key, _ := c.request()
	name := identity.Name{Cluster: "abc", Kind: identity.Controller, ID: "c1"}
	tmpl := &x509.Certificate{SerialNumber: newSerial(), URIs: []*url.URL{name.URI()}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: start(), NotAfter: start().Add(day), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key.PrivateKey)
	c.must(err)
	root := parsed(t, [][]byte{der})[0]
	leaf, err := c.template(identity.Controller, Subject{ID: "c2"}, start())
	c.must(err)
	leaf.URIs = []*url.URL{identity.Name{Cluster: "abc", Kind: identity.Controller, ID: "c2"}.URI()}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key.PrivateKey)
	c.must(err)
	_, _, err = identity.Pinned(identity.FingerprintOf(root), parsed(t, [][]byte{leafDER, der}),
		clockAt(start(), time.Time{}))
	if !errors.Is(err, &identity.PeerError{Fault: identity.Malformed}) {
		t.Error(err)
	}
	_, _, err = identity.Pinned(c.Fingerprint(), nil, clockAt(start(), time.Time{}))
	if !errors.Is(err, &identity.PeerError{Fault: identity.Missing}) {
		t.Error(err)
	}
}
