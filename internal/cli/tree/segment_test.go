package tree

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli/network"
	"heddle/internal/plan"
)

// Whoever looks at a port, a port group or a tunnel sees which overlay segments these are about.
func TestS84_OverlaySegmentsAreShownWhereTheirPortsAre(t *testing.T) {
	web := api.PortGroup{Switch: "lab", Name: "web", VNI: 5000, VLAN: plan.VLAN{Mode: plan.VLANAccess, ID: 10}}
	vm := api.Port{Switch: "lab", Name: "vm1", PortGroup: "web", VNI: 5000, State: api.Up}
	tunnel := api.Uplink{Switch: "lab", Name: "tunnel", Device: "vx-lab", State: api.Up, Tunnel: &api.Tunnel{Port: 4789,
		Replication: "head", Endpoints: []string{"192.0.2.1"}, VNIs: []uint32{5000}, Known: 300,
		Peers: []api.TunnelPeer{{Host: "esx2", Address: "198.51.100.2", Segments: 1}}}}
	s := &standIn{state: api.State{Switches: []api.Switch{{Name: "lab"}}, PortGroups: []api.PortGroup{web},
		Ports: []api.Port{vm}, Uplinks: []api.Uplink{tunnel}}}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"port list", []string{"VNI 5000"}}, {"port list --vni 5000 --vlan 0", []string{"vm1"}},
		{"port list --vlan 0 -o json", []string{"[]"}}, {"port list --vni 5001 -o json", []string{"[]"}},
		{"port list -o wide", []string{"VNI 5000"}},
		{"port show vm1", []string{"overlay segment:       VNI 5000"}},
		{"port-group list", []string{"VNI 5000, access 10"}},
		{"port-group show web", []string{"overlay segment:      VNI 5000"}},
		{"uplink show tunnel", []string{"VXLAN, UDP port 4789", "endpoints here:      192.0.2.1", "VNI 5000",
			"esx2        198.51.100.2                   1", "and 299 more"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			out := newConsole(t, s).must(strings.Fields(c.args)...)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
	tunnel.Tunnel.Known, tunnel.Tunnel.Peers = 0, nil
	var out strings.Builder
	if err := network.PrintTunnel(&out, nil, tunnel); err != nil || !strings.Contains(out.String(), "nothing leaves") {
		t.Errorf("of a tunnel without others: %v\n%s", err, out.String())
	}
}
