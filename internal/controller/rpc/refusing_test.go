package rpc

import (
	"crypto/tls"
	"fmt"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"net"
	"testing"
)

// Who comes with the certificate of another cluster, or with no TLS at all, is refused, counted by reason, and fills no
// log.
func TestDoor_RefusalsAreCountedAndTheLogIsBounded(t *testing.T) {
	const tries, noTLS = 40, "no-tls"
	c := newController(t)
	key := must(identity.NewKey())(t)
	other := newAuthority(t)
	issued := must(other.IssueController(must(key.Request())(t), pki.Subject{ID: "c1"}, c.now()))(t)
	foreigner := other.Serving(issued.Certificate, key).Certificate
	stranger := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreigner, nil }}
	for range tries {
		conn := tls.Client(must(net.Dial("tcp", c.address))(t), stranger)
		_ = conn.Handshake() // TLS 1.3: the client is done before it is judged
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a stranger is answered")
		}
		_ = conn.Close()
		plain := must(net.Dial("tcp", c.address))(t)
		if _, err := fmt.Fprintf(plain, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Error(err)
		}
		_, _ = plain.Read(make([]byte, 1)) // until it is closed
		_ = plain.Close()
	}
	foreign := identity.Foreign.String()
	c.await("all are counted", func() bool {
		n := c.refused.Counts()
		return n[foreign] == tries && n[noTLS] == tries
	})
	for _, reason := range []string{foreign, noTLS} {
		t.Run(reason, func(t *testing.T) {
			if n := c.log.count("a connection is refused", "reason="+reason); n == 0 || n > tries/2 {
				t.Errorf("%d lines in the log for %d connections", n, tries)
			}
		})
	}
	for reason, n := range c.refused.Counts() {
		if n != 0 && reason != foreign && reason != noTLS {
			t.Errorf("%d are %s", n, reason)
		}
	}
}
