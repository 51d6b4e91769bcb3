package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/test/testkit"
)

const someMove = "00112233445566778899aabbccddeeff"

// patience is how long a condition may take; no test waits that long when all is well.
const patience = time.Minute

// cluster makes the certificates of a test.
type cluster struct {
	t *testing.T
	*pki.Authority
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	secret := pki.NewSecret()
	d, err := pki.New("test", secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, a}
}

// identity is one with a certificate that was issued by issue.
func (c *cluster) identity(id string, issue func([]byte, pki.Subject, time.Time) (*pki.Issued, error)) Identity {
	c.t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	csr, err := key.Request()
	if err != nil {
		c.t.Fatal(err)
	}
	issued, err := issue(csr, pki.Subject{ID: id}, time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	own := &identity.Credentials{Trust: c.Trust(), Certificate: tls.Certificate{
		Certificate: [][]byte{issued.Certificate.Raw}, PrivateKey: key.PrivateKey, Leaf: issued.Certificate}}
	return func() (*identity.Between, error) {
		return &identity.Between{Own: func() (*identity.Credentials, error) { return own, nil }}, nil
	}
}

func (c *cluster) host(id string) Identity { return c.identity(id, c.IssueHost) }

// taking is a host with a listener.
type taking struct {
	t *testing.T
	*Listener
	from atomic.Pointer[string] // the source of someMove; nil for no such move
	at   []string

	mu    sync.Mutex
	taken []*hostv1.CopyPortRequest
}

func (c *cluster) target(id string) *taking {
	c.t.Helper()
	g := &taking{t: c.t}
	g.Listener = New(Options{Listen: "127.0.0.1:0", Identity: c.host(id), Log: slog.New(slog.DiscardHandler),
		Expect: func(move string) (string, bool) {
			from := g.from.Load()
			if from == nil || move != someMove {
				return "", false
			}
			return *from, true
		}, Take: g.take})
	at, err := g.Open()
	if err != nil || len(at) != 1 {
		c.t.Fatal(at, err)
	}
	g.at = at
	c.t.Cleanup(g.Close)
	return g
}

func (g *taking) take(_ context.Context, q *hostv1.CopyPortRequest) (*hostv1.CopyPortResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = append(g.taken, q)
	return &hostv1.CopyPortResponse{Confirmed: q.GetNumber(), Phase: hostv1.TargetPhase_TARGET_PHASE_WAITING}, nil
}

func (g *taking) takes(from string) { g.from.Store(&from) }

func (g *taking) order(host string) *controllerv1.MoveOrder {
	return &controllerv1.MoveOrder{Move: someMove, Host: host, HostName: "the target", Addresses: g.at}
}

// trying is a caller that remembers where it tried to connect.
type trying struct {
	*Caller
	mu    sync.Mutex
	tried []string
}

func (c *cluster) caller(id Identity) *trying {
	k := &trying{}
	k.Caller = NewCaller(CallerOptions{Identity: id, Dial: func(ctx context.Context, network, address string) (net.Conn,
		error) {
		k.mu.Lock()
		k.tried = append(k.tried, address)
		k.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	c.t.Cleanup(k.Close)
	return k
}

func copyOf(number uint64) *hostv1.CopyPortRequest {
	return &hostv1.CopyPortRequest{Move: someMove, Number: number, Bundle: &hostv1.PortBundle{Version: 1}}
}

func TestS79_ACopyGoesFromTheSourceToTheTarget(t *testing.T) {
	c := newCluster(t)
	g := c.target("target")
	g.takes("source")
	k := c.caller(c.host("source"))
	order := g.order("target")
	closed := testkit.Unused(t)
	order.Addresses = []string{"name.example:7413", closed, g.at[0]}
	for n := range uint64(3) {
		a, err := k.Call(t.Context(), order, copyOf(n+1))
		if err != nil || a.GetConfirmed() != n+1 || a.GetPhase() != hostv1.TargetPhase_TARGET_PHASE_WAITING {
			t.Fatal(a, err)
		}
	}
	if want := []string{closed, g.at[0]}; !slices.Equal(k.tried, want) {
		t.Errorf("three calls connect to %v, want %v", k.tried, want)
	}
	if len(g.taken) != 3 || g.taken[2].GetNumber() != 3 || g.taken[2].GetBundle().GetVersion() != 1 {
		t.Errorf("%v", g.taken)
	}
	// The address that answered is the first one to be tried again.
	k.targets["target"].transport.CloseIdleConnections()
	k.tried = nil
	if _, err := k.Call(t.Context(), order, copyOf(4)); err != nil || !slices.Equal(k.tried, g.at) {
		t.Error(err, k.tried)
	}
}

func TestS104_ADoorServesTheHostThatWasNamed(t *testing.T) {
	c := newCluster(t)
	g := c.target("target")
	other := newCluster(t)
	source, nobody := "source", ""
	for _, row := range []struct {
		what   string
		from   *string // which source the target was told of; nil for no such move
		by     Identity
		target string // whom the caller looks for
		want   connect.Code
		fault  identity.PeerFault // with which the caller refuses the target
	}{
		{"the source", &source, c.host("source"), "target", 0, 0},
		{"another host", &source, c.host("third"), "target", connect.CodePermissionDenied, 0},
		{"no such move", nil, c.host("source"), "target", connect.CodeNotFound, 0},
		{"a source that is not known yet", &nobody, c.host("source"), "target", connect.CodeUnavailable, 0},
		{"a controller", &source, c.identity("source", c.IssueController), "target", connect.CodeUnavailable, 0},
		{"a host of another cluster", &source, other.host("source"), "target", connect.CodeUnavailable,
			identity.Foreign},
		{"whoever has the target's address", &source, c.host("source"), "elsewhere", connect.CodeUnavailable,
			identity.OtherHost},
	} {
		t.Run(row.what, func(t *testing.T) {
			g.from.Store(row.from)
			before := len(g.taken)
			_, err := c.caller(row.by).Call(t.Context(), g.order(row.target), copyOf(1))
			took := len(g.taken) - before
			switch {
			case row.want == 0:
				if err != nil || took != 1 {
					t.Error(err, took)
				}
			case connect.CodeOf(err) != row.want || took != 0:
				t.Errorf("%v (%v), %d taken", err, connect.CodeOf(err), took)
			case row.fault != 0 && !errors.Is(err, &identity.PeerError{Fault: row.fault}):
				t.Errorf("%v, want %v", err, row.fault)
			}
		})
	}
}

func TestS104_ACopyIsBounded(t *testing.T) {
	c := newCluster(t)
	g := c.target("target")
	g.takes("source")
	k := c.caller(c.host("source"))
	big := copyOf(1)
	big.ProtoReflect().SetUnknown(append([]byte{0xfa, 0x7f, 0x81, 0x80, 0x80, 0x02}, make([]byte, maxMessage+1)...))
	if _, err := k.Call(t.Context(), g.order("target"), big); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("%v", err)
	}
	if a, err := k.Call(t.Context(), g.order("target"), copyOf(2)); err != nil || a.GetConfirmed() != 2 ||
		len(g.taken) != 1 {
		t.Error(a, err)
	}
}

// A thousand connections that say nothing keep no source out, and most of them are ended.
func TestS104_IdleConnectionsKeepNoSourceOut(t *testing.T) {
	c := newCluster(t)
	g := c.target("target")
	g.takes("source")
	k := c.caller(c.host("source"))
	if _, err := k.Call(t.Context(), g.order("target"), copyOf(1)); err != nil {
		t.Fatal(err)
	}
	const idle = 1000
	var ended sync.WaitGroup
	left := make(chan struct{}, idle)
	for range idle {
		conn, err := net.Dial("tcp", g.at[0])
		if err != nil {
			t.Fatal(err)
		}
		ended.Go(func() {
			_, _ = io.Copy(io.Discard, conn)
			left <- struct{}{}
		})
		t.Cleanup(func() { _ = conn.Close() })
	}
	for range idle - mostProving {
		select {
		case <-left:
		case <-time.After(patience):
			t.Fatal("idle connections stay")
		}
	}
	for _, by := range []*trying{k, c.caller(c.host("source"))} {
		if _, err := by.Call(t.Context(), g.order("target"), copyOf(2)); err != nil {
			t.Error(err)
		}
	}
	g.Close() // ends the others
	ended.Wait()
}

func TestListener_OpensAndCloses(t *testing.T) {
	c := newCluster(t)
	g := c.target("target")
	g.takes("source")
	if again, err := g.Open(); err != nil || !slices.Equal(again, g.at) {
		t.Error(again, err)
	}
	second := New(Options{Listen: g.at[0], Log: slog.New(slog.DiscardHandler)})
	if at, err := second.Open(); err == nil || !strings.Contains(err.Error(), "--move-listen") {
		t.Errorf("a port that is in use: %v %v", at, err)
	}
	k := c.caller(c.host("source"))
	if _, err := k.Call(t.Context(), g.order("target"), copyOf(1)); err != nil {
		t.Error(err)
	}
	g.Close()
	g.Close()
	if _, err := k.Call(t.Context(), g.order("target"), copyOf(2)); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a door that is closed: %v", err)
	}
	var err error
	if g.at, err = g.Open(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Call(t.Context(), g.order("target"), copyOf(3)); err != nil {
		t.Error(err)
	}
	for _, none := range []string{"", None} {
		if at, err := New(Options{Listen: none}).Open(); !errors.Is(err, ErrDisabled) {
			t.Errorf("%q: %v %v", none, at, err)
		}
	}
}

func TestOffered(t *testing.T) {
	all := func(list ...string) (out []net.Addr) {
		for _, text := range list {
			p := netip.MustParsePrefix(text)
			out = append(out, &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
		}
		return out
	}
	first := []netip.Addr{netip.MustParseAddr("192.0.2.9")}
	for _, row := range []struct {
		first []netip.Addr
		all   []net.Addr
		want  string
	}{
		{nil, nil, ""},
		{nil, all("127.0.0.1/8", "::1/128", "fe80::1/64", "192.0.2.1/24", "2001:db8::1/64"),
			"192.0.2.1:7413 [2001:db8::1]:7413"},
		{first, all("192.0.2.1/24", "192.0.2.9/24"), "192.0.2.9:7413 192.0.2.1:7413"},
		{[]netip.Addr{netip.MustParseAddr("::ffff:192.0.2.9")}, all("192.0.2.9/24"), "192.0.2.9:7413"},
		{[]netip.Addr{netip.MustParseAddr("127.0.0.1")}, all("127.0.0.1/8", "192.0.2.1/24"),
			"127.0.0.1:7413 192.0.2.1:7413"},
		{first, all("192.0.2.11/24", "192.0.2.12/24", "192.0.2.13/24", "192.0.2.14/24", "192.0.2.15/24",
			"192.0.2.16/24", "192.0.2.17/24", "192.0.2.18/24"), "192.0.2.9:7413 192.0.2.11:7413 192.0.2.12:7413 " +
			"192.0.2.13:7413 192.0.2.14:7413 192.0.2.15:7413 192.0.2.16:7413 192.0.2.17:7413"},
	} {
		if got := strings.Join(offered(row.first, row.all, 7413), " "); got != row.want {
			t.Errorf("%v %v: %s, want %s", row.first, row.all, got, row.want)
		}
	}
}

func TestCheckListen(t *testing.T) {
	for at, good := range map[string]bool{"": true, None: true, DefaultListen: true, "192.0.2.1:7413": true,
		"[2001:db8::1]:0": true, "host:7413": false, "7413": false, "192.0.2.1": false, ":x y": false,
		":70000": false} {
		if err := CheckListen(at); (err == nil) != good {
			t.Errorf("%q: %v", at, err)
		}
	}
}

func TestS104_AHostCallsAddressesAlone(t *testing.T) {
	many := slices.Repeat([]string{"192.0.2.1:1"}, mostAddresses+1)
	for _, row := range []struct {
		said []string
		want int
	}{
		{nil, 0}, {[]string{"name:7413", ":7413", "0.0.0.0:1", "224.0.0.1:1", "192.0.2.1:0", "192.0.2.1"}, 0},
		{[]string{"name:7413", "[2001:db8::1]:7413", "127.0.0.1:1"}, 2}, {many, mostAddresses},
	} {
		if got, err := CheckAddresses(row.said); len(got) != row.want || (err == nil) != (row.want > 0) {
			t.Errorf("%v: %v %v", row.said, got, err)
		}
	}
}
