package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"heddle/internal/identity"
)

// maxRequest is the length of the longest request for a certificate, in bytes; those of hosts have less than 300.
const maxRequest = 4 << 10

// Issued is a certificate that was made, as the host's object keeps it.
type Issued struct {
	Certificate *x509.Certificate
	// Root is the fingerprint of the root that signed it.
	Root identity.Fingerprint
	// Roots are those that its owner is to trust, Trusts their fingerprints.
	Roots  []*x509.Certificate
	Trusts []identity.Fingerprint
}

// Subject is who a certificate is for. The controller knows it; nothing of it comes from the request.
type Subject struct {
	ID string
	// Display is the name by which people know the host or the controller; nothing is decided by it.
	Display string
	// Addresses are names and addresses of a controller for programs that compare them, such as curl and browsers.
	// Hosts have none.
	Addresses []string
	// Life is CertificateLife if it is zero.
	Life time.Duration
}

// IssueHost makes a host's certificate from its request.
func (a *Authority) IssueHost(request []byte, s Subject, now time.Time) (*Issued, error) {
	if len(s.Addresses) > 0 {
		return nil, errors.New("a host's certificate has no addresses")
	}
	return a.issue(request, identity.Host, s, now)
}

// IssueController makes a controller's certificate from its request.
func (a *Authority) IssueController(request []byte, s Subject, now time.Time) (*Issued, error) {
	return a.issue(request, identity.Controller, s, now)
}

// Renew makes the next certificate of who is connected with the one before. One that has expired, or begins later, is
// renewed for its own key only: whoever has found the key of a host may not hide behind another one.
func (a *Authority) Renew(p *identity.Peer, request []byte, s Subject, now time.Time) (*Issued, error) {
	if p.Name.ID != s.ID || p.Name.Kind != identity.Host {
		return nil, fmt.Errorf("%s asks for a certificate of the host %q: each host renews its own", p.Name, s.ID)
	}
	key, err := readRequest(request)
	if err != nil {
		return nil, err
	}
	if p.RenewOnly && !key.fingerprint.Equal(p.Key) {
		return nil, fmt.Errorf("the certificate of %s does not count at %s: it is renewed for its own key, not for "+
			"another one", p.Name, stamp(now))
	}
	return a.IssueHost(request, s, now)
}

func (a *Authority) issue(request []byte, kind identity.Kind, s Subject, now time.Time) (*Issued, error) {
	if a.key.PrivateKey == nil {
		return nil, errors.New("the authority's key is not open: nothing can be issued without the cluster's secret")
	}
	key, err := readRequest(request)
	if err != nil {
		return nil, err
	}
	tmpl, err := a.template(kind, s, now)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.trust.Roots[0], key.public, a.key.PrivateKey)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	return &Issued{Certificate: c, Root: a.Fingerprint(), Roots: a.trust.Roots, Trusts: a.Trusted()}, err
}

// Trusted are the fingerprints of the roots that whoever gets a certificate now is to trust.
func (a *Authority) Trusted() (list []identity.Fingerprint) {
	for _, r := range a.trust.Roots {
		list = append(list, identity.FingerprintOf(r))
	}
	return list
}

func (a *Authority) template(kind identity.Kind, s Subject, now time.Time) (*x509.Certificate, error) {
	name := identity.Name{Cluster: a.trust.Cluster, Kind: kind, ID: s.ID}
	if err := name.Check(); err != nil {
		return nil, err
	}
	root, life := a.trust.Roots[0], s.Life
	if life <= 0 {
		life = CertificateLife
	}
	if !now.Before(root.NotAfter) {
		return nil, fmt.Errorf("the cluster's root expired on %s: rotate it", root.NotAfter.UTC().Format(time.DateOnly))
	}
	t := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{Organization: []string{"Heddle"}, CommonName: shorten(s.Display)},
		URIs: []*url.URL{name.URI()}, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore:   now.Add(-identity.Backdate), NotAfter: now.Add(life),
	}
	if t.NotAfter.After(root.NotAfter) {
		t.NotAfter = root.NotAfter
	}
	if kind == identity.Controller {
		// It is a client of other controllers as well.
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		t.DNSNames = []string{ControllerDNS(a.trust.Cluster)}
	}
	for _, addr := range s.Addresses {
		if ip := net.ParseIP(addr); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, addr)
		}
	}
	return t, nil
}

// ControllerDNS is a DNS name that every controller's certificate of the cluster has, and no host's: for peers that
// know no other names, as those of etcd. It is in no DNS.
func ControllerDNS(c identity.ClusterID) string {
	return "controller." + string(c) + ".heddle.internal"
}

// requested is what counts of a request: the key.
type requested struct {
	public      *ecdsa.PublicKey
	fingerprint identity.Fingerprint
}

// readRequest makes sure that the sender of a request has the key in it, and asks for nothing else.
func readRequest(der []byte) (*requested, error) {
	if len(der) > maxRequest {
		return nil, fmt.Errorf("a request for a certificate has at most %d bytes", maxRequest)
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("this is no request for a certificate: %w", err)
	}
	key, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("a request for a certificate has a key of ECDSA on P-256, and this one has another")
	}
	if err := r.CheckSignature(); err != nil {
		return nil, errors.New("the request for a certificate was not signed with its key")
	}
	if len(r.Subject.Names) > 0 || len(r.Extensions) > 0 {
		return nil, errors.New("a request for a certificate names nobody and asks for no extensions: the controller " +
			"says who a host is")
	}
	return &requested{key, sha256.Sum256(r.RawSubjectPublicKeyInfo)}, nil
}

// KeyOf is the fingerprint of the key in a request.
func KeyOf(request []byte) (identity.Fingerprint, error) {
	r, err := readRequest(request)
	if err != nil {
		return identity.Fingerprint{}, err
	}
	return r.fingerprint, nil
}

// Serving are a controller's credentials: its certificate, and after it all that a host may need to believe it,
// whichever root it knows.
func (a *Authority) Serving(c *x509.Certificate, key identity.Key) *identity.Credentials {
	chain := [][]byte{c.Raw}
	if a.link != nil {
		chain = append(chain, a.link.Raw)
	}
	for _, r := range a.trust.Roots {
		chain = append(chain, r.Raw)
	}
	trust := a.trust
	trust.Chains = identity.NewChains()
	return &identity.Credentials{Trust: trust,
		Certificate: tls.Certificate{Certificate: chain, PrivateKey: key.PrivateKey, Leaf: c}}
}
