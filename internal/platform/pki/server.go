package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	"heddle/internal/identity"
)

// Server is how a controller takes connections: of hosts and controllers with a certificate, and of people and tools
// without one, who show a token afterwards.
type Server struct {
	// Own are the controller's credentials, asked for at each handshake.
	Own func() (*identity.Credentials, error)
	Now func() time.Time
	// Revoked returns an error for a certificate that was withdrawn; nil revokes none.
	Revoked func(*identity.Peer) error
	// Protocols are offered by ALPN: h2 and http/1.1 if there are none.
	Protocols []string
}

// TLS is how it takes them. A certificate that is shown and not in order ends the handshake; Peer says who is
// there afterwards.
func (s Server) TLS() *tls.Config {
	var last atomic.Pointer[served]
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: s.protocols(),
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			own, err := s.Own()
			if err != nil {
				return nil, err
			}
			if l := last.Load(); l != nil && l.by == own {
				return l.conf, nil
			}
			l := &served{own, s.with(own)}
			last.Store(l)
			return l.conf, nil
		}}
}

// served is what connections are taken with, by the same credentials.
type served struct {
	by   *identity.Credentials
	conf *tls.Config
}

// PeopleTLS is how it takes people and tools, who are asked for no certificate: they show a token.
func (s Server) PeopleTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: s.protocols(),
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			own, err := s.Own()
			if err != nil {
				return nil, err
			}
			return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: s.protocols(),
				Certificates: []tls.Certificate{own.Certificate}}, nil
		}}
}

func (s Server) protocols() []string {
	if len(s.Protocols) > 0 {
		return s.Protocols
	}
	return []string{"h2", "http/1.1"}
}

// with is how connections are taken with these credentials. The roots are named to the client, so that a browser does
// not ask its user for a certificate that is for something else.
func (s Server) with(own *identity.Credentials) *tls.Config {
	roots := x509.NewCertPool()
	for _, r := range own.Trust.Roots {
		roots.AddCert(r)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: s.protocols(),
		Certificates: []tls.Certificate{own.Certificate}, ClientAuth: tls.RequestClientCert, ClientCAs: roots,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return nil
			}
			_, err := s.Renewing(&c)
			return err
		}}
}

// Peer is who is at the other end of a connection, by what counts now: for all calls but the one that renews a
// certificate.
func (s Server) Peer(c *tls.ConnectionState) (*identity.Peer, error) {
	p, err := s.Renewing(c)
	if err == nil && p.RenewOnly {
		return nil, notNow(p, s.Now())
	}
	return p, err
}

// notNow says that a certificate is good for nothing but renewing it.
func notNow(p *identity.Peer, now time.Time) error {
	if p.Early {
		return &identity.PeerError{Fault: identity.TooEarly, Name: p.Name, Err: fmt.Errorf("it begins on %s, it is %s "+
			"by this controller's clock, and it is good for nothing but renewing it", stamp(p.Certificate.NotBefore),
			stamp(now))}
	}
	return &identity.PeerError{Fault: identity.Overdue, Name: p.Name, Err: fmt.Errorf("it expired on %s, it is %s by "+
		"this controller's clock, and it is good for nothing but renewing it", stamp(p.Certificate.NotAfter),
		stamp(now))}
}

// Renewing is Peer for the call that renews a certificate: one that has expired, or begins later, will do.
func (s Server) Renewing(c *tls.ConnectionState) (*identity.Peer, error) {
	return s.Shown(c.PeerCertificates)
}

// Shown is who has these certificates, as Renewing says it. Nothing of them is remembered: whoever shows them need not
// have their keys.
func (s Server) Shown(certs []*x509.Certificate) (*identity.Peer, error) {
	own, err := s.Own()
	if err != nil {
		return nil, err
	}
	trust := own.Trust
	trust.Chains = nil
	p, err := trust.Client(certs, s.Now(), Grace)
	if err == nil && s.Revoked != nil {
		err = s.Revoked(p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
