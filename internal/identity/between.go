package identity

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// Between is how one host of a cluster talks to another one: each side shows its host's certificate, and a controller
// has told each of them which host the other one is. Hosts know of no revocations: a controller names no host of which
// the certificates were withdrawn.
type Between struct {
	// Own are the host's credentials, asked for at each handshake.
	Own func() (*Credentials, error)
	// Now is the host's clock, which may be wrong; nil for time.Now.
	Now func() time.Time
}

// To is how a host connects: the other side is that host, at whatever address.
func (b Between) To(host string) *tls.Config {
	t := base()
	t.NextProtos = []string{"h2"}
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		own, err := b.Own()
		if err != nil {
			return nil, err
		}
		return &own.Certificate, nil
	}
	t.VerifyConnection = func(s tls.ConnectionState) error {
		p, err := b.Peer(s.PeerCertificates)
		if err == nil && p.Name.ID != host {
			err = refused(OtherHost, p.Name, "it answers where host %s was looked for: another machine has that "+
				"address", host)
		}
		return err
	}
	return t
}

// From is how a host takes connections: the other side is a host of the cluster. Peer says which one it is.
func (b Between) From() *tls.Config {
	t := base()
	t.NextProtos = []string{"h2"}
	t.ClientAuth = tls.RequireAnyClientCert
	t.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		own, err := b.Own()
		if err != nil {
			return nil, err
		}
		return &own.Certificate, nil
	}
	t.VerifyConnection = func(s tls.ConnectionState) error {
		_, err := b.Peer(s.PeerCertificates)
		return err
	}
	return t
}

// Peer is the host that showed these certificates, by what counts now.
func (b Between) Peer(shown []*x509.Certificate) (*Peer, error) {
	own, err := b.Own()
	if err != nil {
		return nil, err
	}
	now := b.Now
	if now == nil {
		now = time.Now
	}
	clock := NewClock(now, append(slices.Clone(own.Trust.Roots), own.Certificate.Leaf)...)
	return own.Trust.Host(shown, clock)
}

// Host makes sure that a chain of certificates is of a host of the cluster. The clock is that of another host, as for a
// controller's.
func (t *Trust) Host(shown []*x509.Certificate, clock Clock) (*Peer, error) {
	p, err := t.peer(shown)
	if err != nil {
		return nil, err
	}
	if p.Name.Kind != Host {
		return nil, refused(OtherKind, p.Name, "this is no host; hosts talk to hosts here")
	}
	at := clock.For(p.Certificate)
	if at.After(p.Certificate.NotAfter) {
		return nil, refused(Overdue, p.Name, "it expired on %s, and it is %s; correct this clock, or look at that host "+
			"why it did not renew its certificate", stamp(p.Certificate.NotAfter), stamp(at))
	}
	return p, t.chain(p, shown[1:], at, at, x509.ExtKeyUsageClientAuth)
}
