package pki

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"heddle/internal/identity"
)

// between is a host that talks to others while its clock shows that time.
func (c *cluster) between(p party, now time.Time) identity.Between {
	own := &identity.Credentials{Trust: c.Trust()}
	if p.cert != nil {
		own.Certificate = tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key.PrivateKey,
			Leaf: p.cert}
	}
	return identity.Between{Own: func() (*identity.Credentials, error) { return own, nil },
		Now: func() time.Time { return now }}
}

// Every certificate that one host refuses of another one, on either side of the connection, and why.
func TestS104_HostsAreWhoACertificateSays(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	sameName := newCluster(t, start())
	sameName.Document.Cluster, sameName.trust.Cluster = c.Document.Cluster, c.Document.Cluster
	us, them, third := c.host("us", start()), c.host("them", start()), c.host("third", start())
	end := start().Add(CertificateLife)
	for _, row := range []struct {
		what string
		who  party
		now  time.Time // on this side
		want identity.PeerFault
		only bool // refused where this side looks for the host them, and taken where it does not know yet which comes
	}{
		{"the host", them, start(), 0, false},
		{"another host", third, start(), identity.OtherHost, true},
		{"a controller", c.controller("them", start()), start(), identity.OtherKind, false},
		{"a host of another cluster", other.host("them", start()), start(), identity.Foreign, false},
		{"of a cluster that says it is this one", sameName.host("them", start()), start(), identity.Foreign, false},
		{"an authority", party{c.key, c.trust.Roots[0]}, start(), identity.Malformed, false},
		{"at its end", them, end, 0, false},
		{"expired", them, end.Add(time.Second), identity.Overdue, false},
		{"none", party{}, start(), identity.Missing, false},
		{"with this clock after a loss of power", them, time.Unix(0, 0), 0, false},
		{"newer than this clock", c.host("them", start().AddDate(0, 1, 0)), start(), 0, false},
	} {
		t.Run(row.what, func(t *testing.T) {
			// The other side's clock is right, and so is its trust.
			peer := c.between(row.who, start())
			peer.Own = func(own func() (*identity.Credentials, error)) func() (*identity.Credentials, error) {
				return func() (*identity.Credentials, error) {
					cr, err := own()
					cr.Trust = c.Trust()
					return cr, err
				}
			}(peer.Own)
			check := func(side string, err error, taken bool) {
				t.Helper()
				switch {
				case taken && err != nil:
					t.Errorf("%s: %v", side, err)
				case !taken && !errors.Is(err, &identity.PeerError{Fault: row.want}):
					t.Errorf("%s: %v, want %v", side, err, row.want)
				}
			}
			mine := c.between(us, row.now)
			if row.who.cert != nil { // a server without a certificate answers nobody
				m := connect(t, peer.From(), mine.To("them"))
				check("it is called", m.client, row.want == 0)
			}
			m := connect(t, mine.From(), peer.To("us"))
			if row.who.cert == nil {
				if m.ok() || m.server == nil {
					t.Error("a host without a certificate comes in")
				}
				_, err := mine.Peer(nil)
				check("it shows none", err, false)
				return
			}
			check("it calls", m.server, row.want == 0 || row.only)
			if p, err := mine.Peer(m.at.PeerCertificates); m.server == nil && (err != nil ||
				p.Name.ID != idOf(t, row.who)) {
				t.Errorf("%+v %v", p, err)
			}
		})
	}
}

func idOf(t *testing.T, p party) string {
	t.Helper()
	n, err := identity.NameOf(p.cert)
	if err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// While the cluster has two roots, a host that has its certificate by the new one and a host that has it by the old one
// talk to one another; when the old root has gone, its certificates count no more.
func TestS104_HostsTalkWhileTheRootIsReplaced(t *testing.T) {
	c := newCluster(t, start())
	old := c.host("old", start())
	meet := func(want bool) {
		t.Helper()
		fresh := c.host("fresh", start())
		if m := connect(t, c.between(old, start()).From(), c.between(fresh, start()).To("old")); m.ok() != want {
			t.Error("the new one calls:", m.server, m.client)
		}
		if m := connect(t, c.between(fresh, start()).From(), c.between(old, start()).To("fresh")); m.ok() != want {
			t.Error("the old one calls:", m.server, m.client)
		}
	}
	for _, step := range []struct {
		make func() (*Document, error)
		want bool
	}{
		{func() (*Document, error) { return c.Document.Announce(c.secret, start()) }, true},
		{func() (*Document, error) { return c.Document.Switch(start()) }, true},
		{func() (*Document, error) { return c.Document.Finish(start()) }, false},
	} {
		d, err := step.make()
		c.must(err)
		c.take(d)
		meet(step.want)
	}
}
