package removal

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/host/hostnet"
)

// Whose connections to this host end is known before anything is removed.
func TestS168_ConnectionsThatEndAreNamed(t *testing.T) {
	r := &Removal{Interfaces: []RemovedInterface{{Device: "vmk0", Addresses: []string{"192.0.2.10/24",
		"2001:db8::10/64"}}}}
	at := netip.MustParseAddrPort
	r.connected([]hostnet.Session{
		{Local: at("192.0.2.10:22"), Remote: at("192.0.2.99:5000")},
		{Local: at("[2001:db8::10]:22"), Remote: at("[2001:db8::99]:5001")},
		{Local: at("192.0.2.11:22"), Remote: at("192.0.2.99:5002")},
		{Local: at("[::ffff:192.0.2.10]:22"), Remote: at("192.0.2.98:5003")},
	})
	want := []string{"192.0.2.99:5000", "[2001:db8::99]:5001", "192.0.2.98:5003"}
	if !slices.Equal(r.Connected, want) ||
		!strings.Contains(strings.Join(r.Lines(), "\n"), "3 connections to this host end (192.0.2.99:5000, ") {
		t.Errorf("%q, %q", r.Connected, r.Lines())
	}
}
