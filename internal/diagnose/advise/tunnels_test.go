package advise

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan/problem"
)

// The sound configuration with a tunnel and a port group of it.
const (
	withoutTunnel = "  portGroups:\n"
	withTunnel    = "  tunnel: {endpoints: [{address: 192.0.2.1}]}\n" + withoutTunnel +
		"  - {name: over, overlay: {vni: 5000}}\n"
)

// tunnel adds the state of the tunnel.
func tunnel(known uint32, vnis []uint32, why string, code problem.Code) func(*rig) {
	return func(r *rig) {
		r.State.Uplinks = append(r.State.Uplinks, api.Uplink{Switch: "lab", Name: r.sw.Tunnel.ID.Name,
			State: api.Up, Reason: why, ReasonCode: code, Tunnel: &api.Tunnel{Known: known, VNIs: vnis}})
	}
}

func tunnelCases() []ruleCase {
	wrong, some := api.FindingWrong, []uint32{5000}
	well := tunnel(1, some, "", "")
	return []ruleCase{
		{rule: "tunnel-endpoint", old: withoutTunnel, new: withTunnel, near: well,
			provoke: tunnel(1, some, "endpoint address 192.0.2.1 is in use by host h3 as well",
				problem.EndpointShared),
			object: "uplink tunnel", sign: "in use by host h3", fix: "heddle uplink show tunnel", level: wrong},
		{rule: "tunnel-endpoint", old: withoutTunnel, new: withTunnel, near: well,
			provoke: tunnel(1, some, "endpoint 192.0.2.1: its device eth1 is down", problem.NoEndpoint),
			object:  "uplink tunnel", sign: "eth1 is down", fix: "heddle uplink show tunnel", level: wrong},
		{rule: "tunnel-mtu", old: withoutTunnel, new: withTunnel, near: well,
			provoke: tunnel(1, some, "packets of up to 1500 bytes reach the endpoint", problem.LowMTU),
			object:  "uplink tunnel", sign: "1500 bytes", fix: "heddle uplink show tunnel", level: wrong},
		{rule: "tunnel-peers", old: withoutTunnel, new: withTunnel, near: well,
			provoke: tunnel(0, some, "", ""), object: "uplink tunnel", sign: "knows no endpoint",
			fix: "heddle uplink show tunnel", level: api.FindingNote},
		{rule: "tunnel-peers", old: withoutTunnel, new: withTunnel, near: tunnel(0, nil, "", ""),
			provoke: tunnel(0, some, "", ""), object: "uplink tunnel", sign: "knows no endpoint",
			fix: "heddle uplink show tunnel", level: api.FindingNote},
	}
}

// says has the neighbour of the first uplink say this of itself, and the port a of this host have a MAC.
func says(chassis, source string) func(*rig) {
	return func(r *rig) {
		r.State.Ports[0].MAC = "02:00:00:00:00:0a"
		r.uplink(1).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{Chassis: chassis, Port: "eth7", Source: source,
			SystemName: "host2"}}}
	}
}

func twinCases() []ruleCase {
	const of, twin, other = "02:00:00:00:00:0A", "02:00:00:00:00:bb", "02:00:00:00:00:cc"
	one := ruleCase{rule: "mac-outside", object: "uplink u1", fix: "heddle uplink show u1", level: api.FindingWrong,
		sign: "host2, at the other end of the uplink, has the MAC 02:00:00:00:00:0A, which is that of port a"}
	another, itself := one, one
	another.provoke, another.near = says(of, twin), says(other, twin)
	itself.provoke, itself.near = says(of, twin), says(of, of) // two uplinks are joined
	speaks := func(ago time.Duration, uplink string) func(*rig) {
		return func(r *rig) {
			r.Events = append(r.Events, event.Event{Time: r.Now.Add(-ago), Kind: event.Conflict, Switch: "lab",
				Port: "a", Uplink: uplink, MAC: "02:00:00:00:00:0a",
				Text: "a station behind uplink u1 has the MAC of port a, too"})
		}
	}
	heard := ruleCase{rule: "mac-outside", object: "port a", fix: "heddle mac show 02:00:00:00:00:0a",
		level: api.FindingWrong, sign: "a station behind uplink u1", provoke: speaks(0, "u1"),
		near: speaks(0, "")} // of one host
	return []ruleCase{another, itself, heard}
}

// TestAnAddressIsChangedOnlyWhereItIsShared: a card that is down, or a port that another program has, needs no other
// address.
func TestAnAddressIsChangedOnlyWhereItIsShared(t *testing.T) {
	for code, want := range map[problem.Code]bool{problem.EndpointShared: true, problem.NoEndpoint: false,
		problem.DeviceFailed: false} {
		r := newRig(t, strings.Replace(sound, withoutTunnel, withTunnel, 1))
		tunnel(1, []uint32{5000}, "a problem", code)(r)
		found := r.found("tunnel-endpoint")
		if len(found) != 1 || strings.Contains(found[0].Change, "address that no other host has") != want {
			t.Errorf("%s: %+v", code, found)
		}
	}
}
