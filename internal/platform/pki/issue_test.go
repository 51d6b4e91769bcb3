package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
)

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
			_, err := c.IssueHost(der, Subject{ID: "h1"}, start())
			if err == nil || strings.HasPrefix(what, "too long") != strings.Contains(err.Error(), "at most") {
				t.Error(err)
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
			p, err := srv.Renewing(m.at)
			expired := row.now.After(h.cert.NotAfter)
			if !m.ok() || err != nil || p.RenewOnly != expired {
				t.Fatalf("%v %v %v %+v", m.server, m.client, err, p)
			}
			if _, err := srv.Peer(m.at); expired != errors.Is(err, &identity.PeerError{Fault: identity.Overdue}) {
				t.Errorf("for other calls: %v", err)
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
