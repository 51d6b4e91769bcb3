package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// Credentials are what one side has at an instant. They are asked for at each handshake, so that a renewal needs no
// restart.
type Credentials struct {
	Trust Trust
	// Certificate is shown to the other side; it is empty with those who have a token only.
	Certificate tls.Certificate
}

// Client connects to controllers.
type Client struct {
	Own   func() (*Credentials, error)
	Clock Clock
	// Revoked returns an error for a controller that is not to be trusted any more; nil revokes none.
	Revoked func(*Peer) error
}

// TLS is how it connects: the other side is a controller of the cluster, at whatever address.
func (c Client) TLS() *tls.Config {
	t := base()
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		own, err := c.Own()
		if err != nil {
			return nil, err
		}
		return &own.Certificate, nil
	}
	t.VerifyConnection = func(s tls.ConnectionState) error {
		own, err := c.Own()
		if err != nil {
			return err
		}
		p, err := own.Trust.Controller(s.PeerCertificates, c.Clock)
		if err == nil && c.Revoked != nil {
			err = c.Revoked(p)
		}
		return err
	}
	return t
}

// RefusedByPeer reports whether it was the other side that ended a connection for what this side showed. TLS says no
// more than that; why is in the controller's log. With TLS 1.3 a client learns it from its first read.
func RefusedByPeer(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// PinnedTLS connects to a controller of the cluster that has an authority with that fingerprint.
func PinnedTLS(root Fingerprint, clock Clock) *tls.Config {
	t := base()
	t.VerifyConnection = func(s tls.ConnectionState) error {
		_, _, err := Pinned(root, s.PeerCertificates, clock)
		return err
	}
	return t
}

// JoinTLS is how a host connects that has nothing but a token.
func JoinTLS(token JoinToken, clock Clock) *tls.Config {
	t := base()
	t.VerifyConnection = func(s tls.ConnectionState) error {
		_, _, err := Joined(token, s.PeerCertificates, clock)
		return err
	}
	return t
}

// Joined returns who answered on a connection of JoinTLS, and which roots to trust from now on.
func Joined(token JoinToken, shown []*x509.Certificate, clock Clock) (*Peer, *Trust, error) {
	p, t, err := Pinned(token.Root, shown, clock)
	if errors.Is(err, &PeerError{Fault: Foreign}) {
		err = &TokenError{WrongCluster, token.ID, err}
	}
	return p, t, err
}

// base is TLS 1.3 without tickets: a connection that is resumed would go on with an identity that may have been revoked
// since. The name and the chain are checked by VerifyConnection, as no address is part of them.
func base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, SessionTicketsDisabled: true}
}
