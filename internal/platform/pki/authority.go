package pki

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"heddle/internal/identity"
)

const (
	// RootLife is how long a root counts.
	RootLife = 10 * 365 * 24 * time.Hour
	// CertificateLife is how long a host's or a controller's certificate counts, if nothing else is asked for.
	CertificateLife = 90 * 24 * time.Hour
	// Grace is how long after its end a host's certificate is good for renewing it.
	Grace = 90 * 24 * time.Hour
)

// New makes a cluster's authority.
func New(name string, s Secret, now time.Time) (*Document, error) {
	d := &Document{Format: documentFormat, Cluster: identity.NewClusterID(), Name: name, Stage: Steady, Changed: now}
	root, _, _, err := newRoot(d, s, now)
	if err != nil {
		return nil, err
	}
	d.Issuing = *root
	return d, nil
}

// newRoot makes a root that signs itself.
func newRoot(d *Document, s Secret, now time.Time) (*Root, *x509.Certificate, identity.Key, error) {
	key, err := identity.NewKey()
	if err != nil {
		return nil, nil, key, err
	}
	tmpl := rootTemplate(d, now)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key.PrivateKey)
	if err != nil {
		return nil, nil, key, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, key, err
	}
	r := &Root{Certificate: der}
	r.Key, err = sealKey(d.Cluster, cert, key, s)
	return r, cert, key, err
}

func rootTemplate(d *Document, now time.Time) *x509.Certificate {
	name := identity.Name{Cluster: d.Cluster, Kind: identity.Authority}
	return &x509.Certificate{
		SerialNumber: newSerial(),
		// Two roots of a cluster have the same subject; verifiers tell them apart by their key's id.
		Subject: pkix.Name{Organization: []string{"Heddle"}, CommonName: shorten(d.Name + " " + string(d.Cluster))},
		URIs:    []*url.URL{name.URI()}, IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		// Twice as early as what it signs, so that it counts whenever that does.
		NotBefore: now.Add(-2 * identity.Backdate), NotAfter: now.Add(RootLife),
	}
}

// shorten is a name as far as a certificate's subject holds it (RFC 5280, ub-common-name).
func shorten(name string) string {
	r := []rune(name)
	return string(r[:min(len(r), 64)])
}

func newSerial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] = b[0]&0x7f | 0x40 // positive, and always as long
	return new(big.Int).SetBytes(b[:])
}

func keyPurpose(c identity.ClusterID, root *x509.Certificate) string {
	return fmt.Sprintf("root key of %s, %s", c, identity.FingerprintOf(root))
}

func sealKey(c identity.ClusterID, root *x509.Certificate, key identity.Key, s Secret) (*Sealed, error) {
	text, err := key.PEM()
	if err != nil {
		return nil, err
	}
	return s.Seal(keyPurpose(c, root), text)
}

func openKey(c identity.ClusterID, root *x509.Certificate, r *Root, s Secret) (identity.Key, error) {
	if r.Key == nil {
		return identity.Key{}, errors.New("the root has no key any more")
	}
	text, err := s.Open(keyPurpose(c, root), r.Key)
	if err != nil {
		return identity.Key{}, fmt.Errorf("the authority's key can't be opened: %w", err)
	}
	key, err := identity.ParseKey(text)
	if err == nil && !key.PublicKey.Equal(root.PublicKey) {
		err = errors.New("the authority's key is not that of its certificate")
	}
	return key, err
}

// Authority is a document with its key opened: it issues certificates. It is not changed; after each change of the
// document there is a new one.
type Authority struct {
	Document *Document
	trust    identity.Trust
	link     *x509.Certificate
	key      identity.Key
}

// Open opens the authority for issuing.
func (d *Document) Open(s Secret) (*Authority, error) {
	a, err := d.View()
	if err != nil {
		return nil, err
	}
	a.key, err = openKey(d.Cluster, a.trust.Roots[0], &d.Issuing, s)
	return a, err
}

// View is the authority without its key, which needs no secret: it says what is trusted, and issues nothing.
func (d *Document) View() (*Authority, error) {
	a := &Authority{Document: d, trust: identity.Trust{Cluster: d.Cluster}}
	var err error
	if a.trust.Roots, err = d.roots(); err != nil {
		return nil, err
	}
	if d.Link != nil {
		if a.link, err = x509.ParseCertificate(d.Link); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Trust is what hosts, controllers and people trust: part of each host's slice.
func (a *Authority) Trust() identity.Trust { return a.trust }

// Fingerprint is that of the root that issues, for tokens.
func (a *Authority) Fingerprint() identity.Fingerprint {
	return identity.FingerprintOf(a.trust.Roots[0])
}
