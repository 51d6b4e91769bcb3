package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"heddle/internal/identity"
)

// A certificate that a controller has verified once is refused all the same when it counts no more.
func TestRemembered_ChainsAreRefusedWhenTheyCountNoMore(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	other.Document.Cluster, other.trust.Cluster = c.Document.Cluster, c.Document.Cluster
	now, revoked := start(), false
	host := c.host("h1", start())
	srv := c.server(c.controller("c1", start()), start())
	srv.Now = func() time.Time { return now }
	srv.Revoked = func(p *identity.Peer) error {
		if revoked {
			return &identity.PeerError{Fault: identity.Revoked, Name: p.Name, Err: errors.New("revoked")}
		}
		return nil
	}
	conf := srv.TLS()
	if m := connect(t, conf, c.client(host, start()).TLS()); !m.ok() {
		t.Fatal(m.server, m.client)
	}
	own, err := srv.Own()
	c.must(err)
	for _, step := range []struct {
		name string
		do   func()
		who  *x509.Certificate
		want identity.PeerFault
	}{
		{"again", func() {}, host.cert, 0},
		{"of another authority under the same name", func() {}, other.host("h1", start()).cert, identity.Foreign},
		{"before its time", func() { now = start().Add(-2 * day) }, host.cert, 0}, // to renew it
		{"too old", func() { now = start().Add(CertificateLife + Grace + time.Second) }, host.cert, identity.Overdue},
		{"revoked", func() { now, revoked = start(), true }, host.cert, identity.Revoked},
		{"no longer revoked", func() { revoked = false }, host.cert, 0},
		{"of a root that has ended", func() {
			own.Trust.Roots[0].NotAfter = start().Add(-time.Hour)
			own.Trust.Chains = identity.NewChains() // as with every change of the roots
		}, host.cert, identity.Foreign},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			_, err := own.Trust.Client([]*x509.Certificate{step.who}, now, Grace)
			if err == nil {
				_, err = srv.Renewing(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{step.who}})
			}
			if (step.want == 0) != (err == nil) ||
				err != nil && !errors.Is(err, &identity.PeerError{Fault: step.want}) {
				t.Errorf("%v, want %v", err, step.want)
			}
		})
	}
}

// What a controller serves by follows its credentials: with another authority it takes that one's hosts.
func TestServer_FollowsItsCredentials(t *testing.T) {
	c := newCluster(t, start())
	other := newCluster(t, start())
	other.Document.Cluster, other.trust.Cluster = c.Document.Cluster, c.Document.Cluster
	first := c.controller("c1", start())
	own := c.Serving(first.cert, first.key)
	srv := Server{Own: func() (*identity.Credentials, error) { return own, nil }, Now: start}
	conf := srv.TLS()
	if m := connect(t, conf, c.client(c.host("h1", start()), start()).TLS()); !m.ok() {
		t.Fatal(m.server, m.client)
	}
	second := other.controller("c1", start())
	own = other.Serving(second.cert, second.key)
	if m := connect(t, conf, other.client(other.host("h1", start()), start()).TLS()); !m.ok() {
		t.Error(m.server, m.client)
	}
	if m := connect(t, conf, c.client(c.host("h1", start()), start()).TLS()); m.ok() {
		t.Error("a host of the authority before is taken")
	}
}
