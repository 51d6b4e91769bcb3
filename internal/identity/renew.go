package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"time"
)

// RenewAt is when a certificate is to be renewed: between 60 per cent and two thirds of its life. Hosts that were
// installed together are spread over that time; the certificate's number says where in it, so that a restart does not
// change it.
func RenewAt(c *x509.Certificate) time.Time {
	made := MadeAt(c)
	life := c.NotAfter.Sub(made)
	return made.Add(life*2/3 - Spread(c, life/15))
}

// Spread is a share of a time that depends on the certificate alone.
func Spread(c *x509.Certificate, within time.Duration) time.Duration {
	sum := sha256.Sum256(c.SerialNumber.Bytes())
	// 32 bits of it, so that the product of seconds fits.
	share := float64(binary.BigEndian.Uint32(sum[:4])) / (1 << 32)
	return time.Duration(share * float64(within))
}

// Outdated reports whether another root than the certificate's issues now. The controller asks this of every host that
// is connected, and tells it to renew: after the root has changed all certificates are outdated at once.
func (t *Trust) Outdated(c *x509.Certificate) bool {
	return len(t.Roots) > 0 && !bytes.Equal(c.AuthorityKeyId, t.Roots[0].SubjectKeyId)
}
