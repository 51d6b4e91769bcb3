package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// Trust is a cluster and its roots: the one that issues first, while there are two.
type Trust struct {
	Cluster ClusterID
	Roots   []*x509.Certificate
	// Chains remembers what was verified; nil for verifying each time.
	Chains *Chains
}

// Peer is the other side of a connection, of which the certificate was checked.
type Peer struct {
	Name Name
	// Serial is the certificate's number in 32 hexadecimal digits.
	Serial string
	// Key is the fingerprint of its public key.
	Key         Fingerprint
	Certificate *x509.Certificate
	// More are those that it showed after its own.
	More []*x509.Certificate
	// RenewOnly: the certificate does not count now, and its holder may do nothing but renew it. Early: because it
	// begins later; otherwise it has expired.
	RenewOnly, Early bool
}

// SerialOf is a certificate's number as text.
func SerialOf(c *x509.Certificate) string { return fmt.Sprintf("%032x", c.SerialNumber) }

// maxShown is how many certificates the other side may show: its own, and the chain of a cluster between two roots.
const maxShown = 1 + maxCerts

// Controller makes sure that a chain of certificates is of a controller of the cluster.
func (t *Trust) Controller(shown []*x509.Certificate, clock Clock) (*Peer, error) {
	p, err := t.peer(shown)
	if err != nil {
		return nil, err
	}
	if p.Name.Kind != Controller {
		return nil, refused(OtherKind, p.Name, "this is no controller; check the URL, and what answers there")
	}
	at := clock.For(p.Certificate)
	if at.After(p.Certificate.NotAfter) {
		return nil, refused(Overdue, p.Name, "it expired on %s, and it is %s; correct this clock, or look at the "+
			"controller why it did not renew its certificate", stamp(p.Certificate.NotAfter), stamp(at))
	}
	return p, t.chain(p, shown[1:], at, at, x509.ExtKeyUsageServerAuth)
}

// Client makes sure that a chain is of a host or a controller of the cluster. A host's that expired less than grace ago
// is good for renewing it. So is a host's that begins later: a root of the cluster has signed it, so that a controller
// made it whose clock was ahead then, or this clock is behind now.
func (t *Trust) Client(shown []*x509.Certificate, now time.Time, grace time.Duration) (*Peer, error) {
	p, err := t.peer(shown)
	if err != nil {
		return nil, err
	}
	if p.Name.Kind != Host && p.Name.Kind != Controller {
		return nil, refused(OtherKind, p.Name, "this is neither a host nor a controller")
	}
	c, at := p.Certificate, now
	switch {
	case now.Before(c.NotBefore) && p.Name.Kind != Host:
		return nil, refused(TooEarly, p.Name, "it begins on %s, and it is %s by this controller's clock; correct the "+
			"clock of the controller that is wrong", stamp(c.NotBefore), stamp(now))
	case now.Before(c.NotBefore):
		p.RenewOnly, p.Early, at = true, true, c.NotBefore
	case now.After(c.NotAfter.Add(grace)):
		return nil, refused(Overdue, p.Name, "it expired on %s, and it is %s by this controller's clock; correct that "+
			"clock if it is wrong; if it is right, this is too long ago to renew it, and the host joins again",
			stamp(c.NotAfter), stamp(now))
	case now.After(c.NotAfter):
		p.RenewOnly, at = true, c.NotAfter
	}
	return p, t.chain(p, shown[1:], at, now, x509.ExtKeyUsageClientAuth)
}

// peer reads the first of the certificates shown, and checks all of it that needs no authority.
func (t *Trust) peer(shown []*x509.Certificate) (*Peer, error) {
	if len(shown) == 0 {
		return nil, refused(Missing, Name{}, "the other side showed no certificate")
	}
	if len(shown) > maxShown {
		return nil, refused(Malformed, Name{}, "the other side showed %d certificates, and %d are the most", len(shown),
			maxShown)
	}
	c := shown[0]
	name, err := NameOf(c)
	if err != nil {
		return nil, &PeerError{Malformed, Name{}, err}
	}
	if name.Cluster != t.Cluster {
		return nil, refused(Foreign, name, "it is of another cluster than %s", t.Cluster)
	}
	if !ourKind(c) || c.IsCA {
		return nil, refused(Malformed, name, "its key is none of ECDSA on P-256, or it is an authority's")
	}
	// A certificate in between may be anybody's, and how long its signature takes depends on its key alone.
	if slices.ContainsFunc(shown[1:], func(c *x509.Certificate) bool { return !ourKind(c) }) {
		return nil, refused(Malformed, name, "one of the other certificates shown has a key that is none of ECDSA on "+
			"P-256")
	}
	return &Peer{Name: name, Serial: SerialOf(c), Key: FingerprintOf(c), Certificate: c,
		More: shown[1:]}, nil
}

// ourKind reports whether a certificate's key is of the only kind that Heddle makes.
func ourKind(c *x509.Certificate) bool {
	k, ok := c.PublicKey.(*ecdsa.PublicKey)
	return ok && k.Curve == elliptic.P256()
}

// Chain is all that the peer showed.
func (p *Peer) Chain() []*x509.Certificate {
	return append([]*x509.Certificate{p.Certificate}, p.More...)
}

// chain makes sure that a root of the cluster that counts now has signed the certificate, and that all was in order at
// that time.
func (t *Trust) chain(p *Peer, more []*x509.Certificate, at, now time.Time, use x509.ExtKeyUsage) error {
	key := chainKey(p.Certificate, more, use)
	if t.Chains.good(key, at, now) {
		return nil
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, r := range t.Roots {
		if !now.After(r.NotAfter) {
			roots.AddCert(r)
		}
	}
	for _, c := range more {
		between.AddCert(c)
	}
	chains, err := p.Certificate.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{use}})
	if err != nil {
		return refused(Foreign, p.Name, "no authority of the cluster that counts today has signed it for this: %w", err)
	}
	t.Chains.add(key, chains[0])
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Pinned finds the authority with a fingerprint among the certificates that a controller shows, and makes sure of the
// controller by it: this is how a host that has nothing but a token knows its cluster.
func Pinned(root Fingerprint, shown []*x509.Certificate, clock Clock) (*Peer, *Trust, error) {
	for _, c := range shown[:min(len(shown), maxShown)] {
		if !FingerprintOf(c).Equal(root) || c.CheckSignatureFrom(c) != nil {
			continue
		}
		name, err := NameOf(c)
		if err != nil || name.Kind != Authority {
			return nil, nil, refused(Malformed, name, "this is no authority of a Heddle cluster")
		}
		t := &Trust{Cluster: name.Cluster, Roots: []*x509.Certificate{c}}
		p, err := t.Controller(shown, clock)
		return p, t, err
	}
	if len(shown) == 0 {
		return nil, nil, refused(Missing, Name{}, "the other side showed no certificate")
	}
	return nil, nil, refused(Foreign, Name{}, "the controller shows no authority with the fingerprint %.16s…", root)
}
