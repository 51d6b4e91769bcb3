package tunnels

import (
	"net/netip"
	"testing"

	"heddle/internal/overlay"
)

// TestTheTunnelStaysWithItsAddress: of a device's addresses the one in use stays, and one that moves between hosts
// serves only where there is no other.
func TestTheTunnelStaysWithItsAddress(t *testing.T) {
	for _, c := range []struct {
		why, named, want string
		have, present    []string
		far              string
	}{
		{"the first", "", "192.0.2.1", []string{"192.0.2.1/24", "192.0.2.2/24"}, nil, ""},
		{"the one in use", "", "192.0.2.2", []string{"192.0.2.1/24", "192.0.2.2/24"}, []string{"192.0.2.2"}, ""},
		{"not one that moves", "", "192.0.2.1", []string{"192.0.2.9/32", "192.0.2.1/24"}, nil, ""},
		{"back from one that moves", "", "192.0.2.1", []string{"192.0.2.9/32", "192.0.2.1/24"},
			[]string{"192.0.2.9"}, ""},
		{"no other", "", "192.0.2.9", []string{"192.0.2.9/32"}, nil, ""},
		{"the other family", "", "2001:db8::1", []string{"192.0.2.9/32", "2001:db8::1/64"}, nil, ""},
		{"the named one", "192.0.2.9", "192.0.2.9", []string{"192.0.2.1/24", "192.0.2.9/32"},
			[]string{"192.0.2.1"}, ""},
		{"the named one is not there", "192.0.2.7", "", []string{"192.0.2.1/24"}, []string{"192.0.2.1"}, ""},
		{"back to the others' family", "", "192.0.2.1", []string{"192.0.2.1/24", "2001:db8::1/64"},
			[]string{"2001:db8::1"}, "192.0.2.2"},
		{"none", "", "", nil, []string{"192.0.2.1"}, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			var have []netip.Prefix
			for _, p := range c.have {
				have = append(have, netip.MustParsePrefix(p))
			}
			named, _ := netip.ParseAddr(c.named)
			want, _ := netip.ParseAddr(c.want)
			by := endpointChoice{}
			for _, a := range c.present {
				by.present = append(by.present, netip.MustParseAddr(a))
			}
			if c.far != "" {
				by.far = []overlay.Endpoint{{Address: netip.MustParseAddr(c.far)}}
			}
			if got := endpointAmong(have, named, by); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestATunnelWithoutACommonFamilySaysSo: a host with an endpoint of IPv6 alone reaches none of IPv4.
func TestATunnelWithoutACommonFamilySaysSo(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	peers := overlay.Reach{Endpoints: []overlay.Endpoint{{Address: netip.MustParseAddr("192.0.2.2")}}}
	if err := familyApart([]netip.Addr{six}, peers); err == nil {
		t.Error("nothing is said of IPv6 here and IPv4 there")
	}
	for _, own := range [][]netip.Addr{{four}, {six, four}, nil} {
		if err := familyApart(own, peers); err != nil {
			t.Errorf("%v: %v", own, err)
		}
	}
	if err := familyApart([]netip.Addr{six}, overlay.Reach{}); err != nil {
		t.Error(err)
	}
}
