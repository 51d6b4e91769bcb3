package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"testing"
	"time"

	"heddle/internal/identity"
)

// How long a signature takes to check depends on the key that is said to have made it. Who shows a certificate with
// another key than Heddle's is refused before anything is checked by it.
func TestShown_NothingIsCheckedByAKeyOfAnotherKind(t *testing.T) {
	c := newCluster(t, start())
	host := c.host("h1", start())
	srv := c.server(c.controller("c1", start()), start())
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	c.must(err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "slow"}, NotBefore: start(),
		NotAfter: start().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	c.must(err)
	slow, err := x509.ParseCertificate(der)
	c.must(err)
	if _, err := srv.Shown([]*x509.Certificate{host.cert}); err != nil {
		t.Errorf("the host's own: %v", err)
	}
	if _, err := srv.Shown([]*x509.Certificate{host.cert, slow}); !errors.Is(err,
		&identity.PeerError{Fault: identity.Malformed}) {
		t.Errorf("with a certificate of another kind: %v", err)
	}
}
