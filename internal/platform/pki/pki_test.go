package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"

	"heddle/internal/identity"
)

// day is a unit of these tests' time, which begins at start.
const day = 24 * time.Hour

func start() time.Time { return time.Date(2027, time.March, 1, 12, 0, 0, 0, time.UTC) }

// cluster is a cluster's authority under test.
type cluster struct {
	t      *testing.T
	secret Secret
	*Authority
}

func newCluster(t *testing.T, now time.Time) *cluster {
	t.Helper()
	c := &cluster{t: t, secret: NewSecret()}
	d, err := New("test", c.secret, now)
	c.must(err)
	c.take(d)
	return c
}

// take makes the document the one that counts, by way of the store's form.
func (c *cluster) take(d *Document) {
	c.t.Helper()
	text, err := d.Encode()
	c.must(err)
	d, err = Decode(text)
	c.must(err)
	c.Authority, err = d.Open(c.secret)
	c.must(err)
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// party is a host or a controller under test.
type party struct {
	key  identity.Key
	cert *x509.Certificate
}

func (c *cluster) request() (identity.Key, []byte) {
	c.t.Helper()
	key, err := identity.NewKey()
	c.must(err)
	r, err := key.Request()
	c.must(err)
	return key, r
}

func (c *cluster) host(id string, now time.Time) party {
	c.t.Helper()
	key, r := c.request()
	i, err := c.IssueHost(r, Subject{ID: id, Display: "host " + id}, now)
	c.must(err)
	return party{key, i.Certificate}
}

func (c *cluster) controller(id string, now time.Time) party {
	c.t.Helper()
	key, r := c.request()
	i, err := c.IssueController(r, Subject{ID: id, Display: id, Addresses: []string{"10.0.0.1", "ctl.example"}}, now)
	c.must(err)
	return party{key, i.Certificate}
}

// server is a controller that takes connections at that time.
func (c *cluster) server(p party, now time.Time) Server {
	own := c.Serving(p.cert, p.key)
	return Server{Own: func() (*identity.Credentials, error) { return own, nil },
		Now: func() time.Time { return now }}
}

// client is a host that connects while its clock shows that time.
func (c *cluster) client(p party, now time.Time) identity.Client {
	return clientOf(c.Trust(), p, clockAt(now, time.Time{}))
}

func clientOf(trust identity.Trust, p party, clock identity.Clock) identity.Client {
	own := &identity.Credentials{Trust: trust}
	if p.cert != nil {
		own.Certificate = tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key.PrivateKey}
	}
	return identity.Client{Own: func() (*identity.Credentials, error) { return own, nil }, Clock: clock}
}

func clockAt(now, floor time.Time) identity.Clock {
	return identity.Clock{Now: func() time.Time { return now }, Floor: floor}
}

// met is what came of a connection.
type met struct {
	server, client error
	at             *tls.ConnectionState // the server's
	by             *tls.ConnectionState // the client's
}

func (m met) ok() bool { return m.server == nil && m.client == nil }

// connect has two sides shake hands, and the client wait for a byte: only then does it know that its certificate was
// taken.
func connect(t *testing.T, server, client *tls.Config) (m met) {
	t.Helper()
	a, b := net.Pipe()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.Close()
		if m.server = s.Handshake(); m.server == nil {
			_, m.server = s.Write([]byte{1})
		}
		st := s.ConnectionState()
		m.at = &st
	}()
	if m.client = c.Handshake(); m.client == nil {
		_, m.client = io.ReadFull(c, make([]byte, 1))
	}
	b.Close()
	<-done
	st := c.ConnectionState()
	m.by = &st
	return m
}
