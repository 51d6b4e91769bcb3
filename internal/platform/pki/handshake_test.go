package pki

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"heddle/internal/identity"
)

func TestHandshake_HostAndController(t *testing.T) {
	c := newCluster(t, start())
	ctl, host := c.controller("c1", start()), c.host("h1", start())
	srv := c.server(ctl, start())
	m := connect(t, srv.TLS(), c.client(host, start()).TLS())
	if !m.ok() {
		t.Fatal(m.server, m.client)
	}
	p, err := srv.Peer(m.at)
	want := identity.Name{Cluster: c.Document.Cluster, Kind: identity.Host, ID: "h1"}
	if err != nil || p.Name != want || p.RenewOnly || p.Serial != identity.SerialOf(host.cert) ||
		p.Key != identity.FingerprintOf(host.cert) {
		t.Errorf("%+v %v", p, err)
	}
	if m.at.Version != tls.VersionTLS13 || m.at.DidResume {
		t.Errorf("version %x, resumed %v", m.at.Version, m.at.DidResume)
	}
	// A controller is a client of another one, too; who shows no certificate may come in, and is nobody.
	if m := connect(t, srv.TLS(), c.client(c.controller("c2", start()), start()).TLS()); !m.ok() {
		t.Error(m.server, m.client)
	}
	m = connect(t, srv.TLS(), c.client(party{}, start()).TLS())
	if _, err := srv.Peer(m.at); !m.ok() || !errors.Is(err, &identity.PeerError{Fault: identity.Missing}) {
		t.Error(m.server, m.client, err)
	}
}

// A client that takes tickets gets none: a connection that is resumed would go around the list of what is revoked.
func TestHandshake_NoConnectionIsResumed(t *testing.T) {
	c := newCluster(t, start())
	srv := c.server(c.controller("c1", start()), start())
	cfg := c.client(c.host("h1", start()), start()).TLS()
	cfg.SessionTicketsDisabled, cfg.ClientSessionCache, cfg.ServerName = false, tls.NewLRUClientSessionCache(4), "x"
	for range 3 {
		if m := connect(t, srv.TLS(), cfg); !m.ok() || m.at.DidResume {
			t.Errorf("%v %v, resumed %v", m.server, m.client, m.at.DidResume)
		}
	}
}

// Every certificate that a controller refuses, and why.
func TestHandshakeRefusesCertificates(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	ctl := c.controller("c1", start())
	host, hostKey := c.host("h1", start()), c.host("h2", start())
	sameName := newCluster(t, start())
	sameName.Document.Cluster, sameName.trust.Cluster = c.Document.Cluster, c.Document.Cluster
	revoked := c.host("bad", start())
	for _, row := range []struct {
		what string
		who  party
		now  time.Time
		want identity.PeerFault
		tls  bool // refused by TLS itself, before there is anything to check
	}{
		{"in order", host, start(), 0, false},
		{"with a clock of the controller that is an hour behind", host, start().Add(-time.Hour), 0, false},
		{"of another cluster", other.host("h1", start()), start(), identity.Foreign, false},
		{"of a cluster that says it is this one", sameName.host("h1", start()), start(), identity.Foreign, false},
		{"an authority's own", party{c.key, c.trust.Roots[0]}, start(), identity.Malformed, false},
		{"with another's key", party{hostKey.key, host.cert}, start(), 0, true},
		{"before its time", host, start().Add(-2 * day), 0, false}, // to renew it
		{"a controller's, before its time", c.controller("c2", start()), start().Add(-2 * day), identity.TooEarly,
			false},
		{"at its end", host, start().Add(CertificateLife), 0, false},
		{"expired", host, start().Add(CertificateLife + time.Second), 0, false}, // to renew it
		{"expired too long ago", host, start().Add(CertificateLife + Grace + time.Second), identity.Overdue, false},
		{"revoked", revoked, start(), identity.Revoked, false},
	} {
		t.Run(row.what, func(t *testing.T) {
			srv := c.server(ctl, row.now)
			srv.Revoked = func(p *identity.Peer) error {
				if p.Name.ID == "bad" {
					return &identity.PeerError{Fault: identity.Revoked, Name: p.Name, Err: errors.New("revoked")}
				}
				return nil
			}
			m := connect(t, srv.TLS(), c.client(row.who, start()).TLS())
			_, err := srv.Renewing(m.at)
			switch {
			case row.tls:
				if m.ok() {
					t.Error("taken")
				}
			case row.want == 0:
				if !m.ok() || err != nil {
					t.Error(m.server, m.client, err)
				}
			case m.ok() || !errors.Is(m.server, &identity.PeerError{Fault: row.want}) ||
				!identity.RefusedByPeer(m.client):
				t.Errorf("the controller: %v, the host: %v, want %v", m.server, m.client, row.want)
			}
		})
	}
}

// Every controller that a host refuses, and why.
func TestHandshake_HostRefusesControllers(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	host := c.host("h1", start())
	for _, row := range []struct {
		what string
		of   *cluster
		who  party
		now  time.Time
		want identity.PeerFault
	}{
		{"in order", c, c.controller("c1", start()), start(), 0},
		{"another cluster's", other, other.controller("c1", start()), start(), identity.Foreign},
		{"a host that says it is one", c, c.host("c1", start()), start(), identity.OtherKind},
		{"expired", c, c.controller("c1", start().Add(-CertificateLife-time.Hour)), start(), identity.Overdue},
		{"with a host's clock two days behind", c, c.controller("c1", start()), start().Add(-2 * day), 0},
		{"with a host's clock of 1970", c, c.controller("c1", start()), time.Unix(60, 0), 0},
		{"with a host's clock of 2090", c, c.controller("c1", start()), start().AddDate(63, 0, 0), identity.Overdue},
	} {
		t.Run(row.what, func(t *testing.T) {
			srv := row.of.server(row.who, start())
			m := connect(t, srv.TLS(), c.client(host, row.now).TLS())
			right := errors.Is(m.client, &identity.PeerError{Fault: row.want}) && !identity.RefusedByPeer(m.client)
			if row.want == 0 && !m.ok() || row.want != 0 && !right {
				t.Errorf("the host: %v, the controller: %v, want %v", m.client, m.server, row.want)
			}
		})
	}
}

// A controller's certificate that ended before the host's program was built, or before the host's own certificate was
// made, is refused whatever the clock says: who has found an old key can't use it on hosts that have lost the time.
func TestHandshake_WrongClockDoesNotReviveOldCertificates(t *testing.T) {
	c := newCluster(t, start())
	old := c.controller("c1", start())
	now := start().Add(CertificateLife + 10*day)
	host := c.host("h1", now)
	lost := func() time.Time { return time.Unix(0, 0) }
	for _, row := range []struct {
		what  string
		clock identity.Clock
		ok    bool
	}{
		{"nothing known", identity.Clock{Now: lost}, true},
		{"the program is newer", identity.Clock{Now: lost, Floor: now}, false},
		{"the host's certificate is newer", identity.NewClock(lost, host.cert), false},
	} {
		t.Run(row.what, func(t *testing.T) {
			srv := c.server(old, start())
			m := connect(t, srv.TLS(), clientOf(c.Trust(), party{}, row.clock).TLS())
			if row.ok != m.ok() || !row.ok && !errors.Is(m.client, &identity.PeerError{Fault: identity.Overdue}) {
				t.Error(m.client, m.server)
			}
		})
	}
}

// A host that has lost the time believes no certificate of a later time but its own cluster's: somebody else's
// authority may give itself the cluster's name.
func TestHandshake_WrongClockDoesNotTrustStrangers(t *testing.T) {
	c, stranger := newCluster(t, start()), newCluster(t, start())
	stranger.Document.Cluster = c.Document.Cluster
	srv := stranger.server(stranger.controller("c1", start()), start())
	lost := clockAt(time.Unix(0, 0), time.Unix(0, 0))
	m := connect(t, srv.TLS(), clientOf(c.Trust(), party{}, lost).TLS())
	if !errors.Is(m.client, &identity.PeerError{Fault: identity.Foreign}) {
		t.Error(m.client, m.server)
	}
	mine := c.server(c.controller("c1", start()), start())
	if m := connect(t, mine.TLS(), clientOf(c.Trust(), party{}, lost).TLS()); !m.ok() {
		t.Error(m.client, m.server)
	}
}

func TestHandshake_HostRefusesARevokedController(t *testing.T) {
	c := newCluster(t, start())
	srv := c.server(c.controller("gone", start()), start())
	client := c.client(c.host("h1", start()), start())
	client.Revoked = func(p *identity.Peer) error {
		return &identity.PeerError{Fault: identity.Revoked, Name: p.Name, Err: errors.New("removed")}
	}
	if m := connect(t, srv.TLS(), client.TLS()); !errors.Is(m.client, &identity.PeerError{Fault: identity.Revoked}) {
		t.Error(m.client)
	}
}

func TestHandshake_OldTLSIsRefused(t *testing.T) {
	c := newCluster(t, start())
	srv := c.server(c.controller("c1", start()), start())
	cfg := c.client(c.host("h1", start()), start()).TLS()
	cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if m := connect(t, srv.TLS(), cfg); m.ok() {
		t.Error("a controller takes TLS 1.2")
	}
	own, err := srv.Own()
	c.must(err)
	old := &tls.Config{Certificates: []tls.Certificate{own.Certificate}, MaxVersion: tls.VersionTLS12}
	if m := connect(t, old, c.client(c.host("h1", start()), start()).TLS()); m.ok() {
		t.Error("a host takes TLS 1.2")
	}
}

// A renewal counts from the next handshake on, without a restart of either side.
func TestHandshake_CredentialsAreLookedUpEachTime(t *testing.T) {
	c := newCluster(t, start())
	ctl := c.controller("c1", start())
	srv := c.server(ctl, start())
	srv.Own = func() (*identity.Credentials, error) { return c.Serving(ctl.cert, ctl.key), nil }
	host := c.host("h1", start())
	client := c.client(party{}, start())
	client.Own = func() (*identity.Credentials, error) {
		return &identity.Credentials{Trust: c.Trust(), Certificate: tls.Certificate{
			Certificate: [][]byte{host.cert.Raw}, PrivateKey: host.key.PrivateKey}}, nil
	}
	server, cfg := srv.TLS(), client.TLS()
	for range 2 {
		m := connect(t, server, cfg)
		if !m.ok() || m.at.PeerCertificates[0].SerialNumber.Cmp(host.cert.SerialNumber) != 0 ||
			m.by.PeerCertificates[0].SerialNumber.Cmp(ctl.cert.SerialNumber) != 0 {
			t.Fatal(m.server, m.client)
		}
		ctl, host = c.controller("c1", start()), c.host("h1", start())
	}
}

// The joining host has a token and a clock of 1970, and an address that stands in no certificate.
func TestJoin_TheTokenFindsItsCluster(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	token, _, err := c.NewJoinToken(JoinTerms{Life: time.Hour, By: "root"}, start())
	c.must(err)
	clock := clockAt(time.Unix(0, 0), time.Time{})
	m := connectTCP(t, c.server(c.controller("c1", start()), start()).TLS(), identity.JoinTLS(token, clock))
	if !m.ok() {
		t.Fatal(m.client, m.server)
	}
	p, trust, err := identity.Joined(token, m.by.PeerCertificates, clock)
	if err != nil || trust.Cluster != c.Document.Cluster || p.Name.ID != "c1" || len(trust.Roots) != 1 {
		t.Errorf("%+v %+v %v", p, trust, err)
	}
	m = connectTCP(t, other.server(other.controller("c1", start()), start()).TLS(), identity.JoinTLS(token, clock))
	if !errors.Is(m.client, &identity.TokenError{Fault: identity.WrongCluster, ID: token.ID}) {
		t.Error(m.client)
	}
	// Who repeats the cluster's public root has no certificate of it.
	liar := other.controller("c1", start())
	srv := other.server(liar, start())
	own, _ := srv.Own()
	own.Certificate.Certificate = append([][]byte{liar.cert.Raw}, c.trust.Roots[0].Raw)
	m = connectTCP(t, srv.TLS(), identity.JoinTLS(token, clock))
	if !errors.Is(m.client, &identity.TokenError{Fault: identity.WrongCluster}) {
		t.Error(m.client)
	}
}

// connectTCP is connect over 127.0.0.1.
func connectTCP(t *testing.T, server, client *tls.Config) (m met) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.(*tls.Conn).Handshake()
			_, werr := conn.Write([]byte{1})
			err = errors.Join(err, werr)
			conn.Close()
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, client)
	if m.client = conn.Handshake(); m.client == nil {
		_, m.client = conn.Read(make([]byte, 1))
	}
	conn.Close()
	m.server = <-done
	st := conn.ConnectionState()
	m.by = &st
	return m
}
