package cluster

import (
	"context"
	"net"
	"net/netip"
	"testing"
)

// connected is a connection that has a local address alone.
type connected struct {
	net.Conn
	at net.Addr
}

func (c connected) LocalAddr() net.Addr { return c.at }

// TestAConnectionUsesOneAddress: an address of the host that the newest connection does not have is none of its
// concern.
func TestAConnectionUsesOneAddress(t *testing.T) {
	var o offering
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::2")
	if o.Uses([]netip.Addr{one, two}) {
		t.Error("it uses an address before there is a connection")
	}
	for _, local := range []string{"192.0.2.1:4711", "[::ffff:192.0.2.1]:4711", "[2001:db8::2]:4711"} {
		dial := o.noting(func(context.Context, string, string) (net.Conn, error) {
			return connected{at: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(local))}, nil
		})
		if _, err := dial(t.Context(), "tcp", ""); err != nil {
			t.Fatal(err)
		}
		first := netip.MustParseAddrPort(local).Addr().Unmap() == one
		if o.Uses([]netip.Addr{one}) != first || o.Uses([]netip.Addr{two}) == first {
			t.Errorf("it is wrong about which address the connection from %s has", local)
		}
	}
}
