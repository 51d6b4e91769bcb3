package network

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
)

func TestLinkRows(t *testing.T) {
	info := api.LACPInfo{SystemPriority: 1, System: "02:00:00:00:00:01", Key: 2, PortPriority: 3, Port: 4,
		State: []string{"active", "slow"}}
	for _, c := range []struct {
		name string
		u    api.Uplink
		want string
	}{
		{"neither", api.Uplink{}, ""},
		{"nobody heard", api.Uplink{LLDP: &api.LLDP{Out: 2}},
			"neighbour: none heard by LLDP or CDP|lldp frames: 0 in, 2 out, 0 bad, 0 refused"},
		{"a switch", api.Uplink{LLDP: &api.LLDP{In: 1,
			Neighbours: []api.Neighbour{{Chassis: "c", Port: "Eth1/7", PortDescription: "rack 4", SystemName: "leaf",
				SystemDescription: "a switch", Source: "s", PVID: 42, MaxFrame: 9214,
				Capabilities: []string{"bridge", "router"}, Management: []string{"192.0.2.1"}}}}},
			"neighbour: leaf port Eth1/7 (rack 4)|chassis: c, from s|system: a switch|reports: untagged VLAN 42, " +
				"frames up to 9214 bytes, bridge and router, managed at 192.0.2.1|" +
				"lldp frames: 1 in, 0 out, 0 bad, 0 refused"},
		{"a nameless neighbour", api.Uplink{
			LLDP: &api.LLDP{Neighbours: []api.Neighbour{{Chassis: "c", Port: "p", PortDescription: "p", Source: "s"}}}},
			"neighbour: c port p|chassis: c, from s|lldp frames: 0 in, 0 out, 0 bad, 0 refused"},
		{"a switch's VLANs", api.Uplink{
			LLDP: &api.LLDP{Neighbours: []api.Neighbour{{Chassis: "c", Port: "p", Source: "s",
				VLANs: []api.NeighbourVLAN{{ID: 10, Name: "web"}, {ID: 20}}}}}},
			"neighbour: c port p|chassis: c, from s|its vlans: 10 (web), 20|" +
				"lldp frames: 0 in, 0 out, 0 bad, 0 refused"},
		{"a LAG without devices", api.Uplink{LAG: &api.LAGMember{Name: "lag1", Reason: "lacp: no partner yet"}},
			"lag: lag1|lacp: not used: no partner yet"},
		{"a member in use", api.Uplink{LAG: &api.LAGMember{Name: "lag1", Used: true, Actor: info, Partner: &info, In: 1,
			Out: 2, Bad: 3, Markers: 4}},
			"lag: lag1|lacp: used|lacp actor: system 1,02:00:00:00:00:01 key 2 port 3,4: active slow|lacp partner: " +
				"system 1,02:00:00:00:00:01 key 2 port 3,4: active slow|" +
				"lacp frames: 1 in, 2 out, 3 bad, 4 markers"},
		{"a single link", api.Uplink{LAG: &api.LAGMember{Name: "lag1", Used: true, Single: true, Actor: info}},
			"lag: lag1|lacp: used alone: no partner is heard|lacp actor: system 1,02:00:00:00:00:01 key 2 port 3,4: " +
				"active slow|lacp frames: 0 in, 0 out, 0 bad, 0 markers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, r := range linkRows(c.u) {
				got = append(got, r[0]+": "+r[1])
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		})
	}
}
