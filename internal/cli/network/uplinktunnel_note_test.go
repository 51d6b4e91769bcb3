package network

import (
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// TestATunnelWithoutOtherHostsIsNoted: one that knows no other host says so, if the host has ports in its segments.
func TestATunnelWithoutOtherHostsIsNoted(t *testing.T) {
	notes := uplinkListing(cli.Deps{}).Notes
	u := api.Uplink{Switch: "lab", Name: "tunnel", Tunnel: &api.Tunnel{VNIs: []uint32{5000}}}
	if got := notes(u); len(got) != 1 {
		t.Errorf("no other host is known: %q", got)
	}
	u.Tunnel.Known = 1
	if got := notes(u); len(got) != 0 {
		t.Errorf("one is known: %q", got)
	}
	u.Tunnel = &api.Tunnel{}
	if got := notes(u); len(got) != 0 {
		t.Errorf("there are no ports in its segments: %q", got)
	}
}
