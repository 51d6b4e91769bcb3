package tree

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli/network"
	"heddle/internal/cli/port"
	"heddle/internal/plan"
)

// stations returns a stand-in whose MACs have IP addresses: configured, guarded and seen in flows.
func stations() *standIn {
	mac := func(last byte) plan.MAC { return plan.MAC{2, 0, 0, 0, 1, last} }
	flow := func(port string, last byte, source, direction string) api.Flow {
		return api.Flow{Switch: "lab", Port: port, Direction: direction, SourceMAC: mac(last),
			Source: netip.MustParseAddr(source)}
	}
	s := &standIn{state: api.State{Switches: []api.Switch{{Name: "lab"}},
		Ports: []api.Port{{Switch: "lab", Name: "vm1/eth0", PortGroup: "web", Owner: "vm1",
			Effective: []plan.Row{{Policy: "security.addressGuard.addresses",
				Value: plan.FieldValueOf([]string{"192.0.2.1"})}}},
			{Switch: "lab", Name: "nest/eth0", PortGroup: "nested", Owner: "nest",
				Effective: []plan.Row{{Policy: "security.addressGuard.addresses",
					Value: plan.FieldValueOf([]string{})}}}}}}
	vlan := plan.SegmentOf(10, false)
	s.macs = []api.MAC{{Switch: "lab", VLAN: vlan, MAC: mac(1).String(), Port: "vm1/eth0", Kind: "port"},
		{Switch: "lab", VLAN: vlan, MAC: mac(2).String(), Port: "nest/eth0", Kind: "port"},
		{Switch: "lab", VLAN: vlan, MAC: mac(3).String(), Port: "nest/eth0", Kind: "learned", IdleSeconds: 5}}
	s.flows.list.Flows = []api.Flow{flow("vm1/eth0", 1, "192.0.2.1", "ingress"),
		flow("vm1/eth0", 1, "2001:db8::1", "ingress"), flow("nest/eth0", 3, "192.0.2.3", "ingress"),
		flow("nest/eth0", 3, "192.0.2.99", "egress"), flow("nest/eth0", 3, "0.0.0.0", "ingress")}
	return s
}

func TestMACList_HasTheIPAddressesThatAreKnown(t *testing.T) {
	unknown := stations()
	unknown.flows.list.Flows, unknown.state.Ports[0].Effective = nil, nil
	for _, row := range []struct {
		name string
		s    *standIn
		args string
		want string
	}{
		{"known", stations(), "mac list", `
SWITCH  VLAN  MAC                PORT       KIND     IDLE  ADDRESSES
lab     10    02:00:00:00:01:01  vm1/eth0   port        -  192.0.2.1,2001:db8::1
lab     10    02:00:00:00:01:02  nest/eth0  port        -  -
lab     10    02:00:00:00:01:03  nest/eth0  learned    5s  192.0.2.3
`},
		{"none is known", unknown, "mac list", `
SWITCH  VLAN  MAC                PORT       KIND     IDLE
lab     10    02:00:00:00:01:01  vm1/eth0   port        -
lab     10    02:00:00:00:01:02  nest/eth0  port        -
lab     10    02:00:00:00:01:03  nest/eth0  learned    5s
`},
		{"wide", unknown, "mac list -o wide", `
SWITCH  VLAN  MAC                PORT       KIND     IDLE  PORT GROUP  OWNER  ADDRESSES
lab     10    02:00:00:00:01:01  vm1/eth0   port        -  web         vm1    -
lab     10    02:00:00:00:01:02  nest/eth0  port        -  nested      nest   -
lab     10    02:00:00:00:01:03  nest/eth0  learned    5s  nested      nest   -
`},
		{"one", stations(), "mac show 02:00:00:00:01:03", `
SWITCH  VLAN  MAC                PORT       KIND     IDLE  ADDRESSES
lab     10    02:00:00:00:01:03  nest/eth0  learned    5s  192.0.2.3
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := newConsole(t, row.s).must(strings.Fields(row.args)...)
			if d := cmp.Diff(row.want[1:], got); d != "" {
				t.Error(d)
			}
		})
	}
	var list []port.ShownMAC
	if err := json.Unmarshal([]byte(newConsole(t, stations()).must("mac", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	want := port.ShownMAC{MAC: stations().macs[0], Addresses: []string{"192.0.2.1", "2001:db8::1"}, PortGroup: "web",
		Owner: "vm1"}
	if d := cmp.Diff(want, list[0]); len(list) != 3 || d != "" {
		t.Error(d)
	}
}

// An empty list of guarded addresses is not shown as an address.
func TestPortListWide_NoneIsNoAddress(t *testing.T) {
	if text := newConsole(t, stations()).must("port", "list", "-o", "wide"); strings.Contains(text, "none,") ||
		strings.Contains(text, " none  -") {
		t.Error(text)
	}
}

// A switch is shown with its LAGs, and without settings that have their default.
func TestSwitchShow_IsCompactAndListsLAGs(t *testing.T) {
	member := func(name string, state api.PortState) api.Uplink {
		return api.Uplink{Switch: "lab", Name: name, State: state, Speed: 25e9, LAG: &api.LAGMember{Name: "lag1",
			Used: state == api.Up}}
	}
	set := *network.DefaultIPFIX()
	set.ActiveFlowTimeoutSeconds, set.ObservationDomainID = 300, 7
	for _, row := range []struct {
		name    string
		ipfix   *api.IPFIX
		uplinks []api.Uplink
		want    string
	}{
		{"as by default", network.DefaultIPFIX(), nil, `
switch:                         lab
kind:                           distributed
mtu:                            1500
port groups:                    2
ports up:                       3 of 4
uplinks:                        -
lags:                           -
checks.reversePath:             true
checks.reversePathPromiscuous:  false
checks.blockGuestBPDU:          false
ipfix.collectors:               none
`},
		{"set", &set, []api.Uplink{member("up1", api.Up), member("up2", api.Down), {Switch: "dmz", Name: "up1"}}, `
switch:                         lab
kind:                           distributed
mtu:                            1500
port groups:                    2
ports up:                       3 of 4
uplinks:                        up1 (up, 25 Gb/s), up2 (down, 25 Gb/s)
lags:                           lag1 (degraded, 1 of 2 used: up1, up2)
checks.reversePath:             true
checks.reversePathPromiscuous:  false
checks.blockGuestBPDU:          false
ipfix.collectors:               none
ipfix.observationDomainId:      7
ipfix.activeFlowTimeout:        5m
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &standIn{state: api.State{Uplinks: row.uplinks, Switches: []api.Switch{{Name: "lab",
				Kind: "distributed", MTU: 1500, PortGroups: 2, Ports: 4, PortsUp: 3, ReversePath: true,
				IPFIX: row.ipfix}}}}
			if d := cmp.Diff(row.want[1:], newConsole(t, s).must("switch", "show", "lab")); d != "" {
				t.Error(d)
			}
		})
	}
}

// The counters with vSphere's names include copies refused in normal operation; the output says how many these are.
func TestStatsPort_SaysWhatIsFiltered(t *testing.T) {
	for _, row := range []struct {
		name    string
		refused api.ReasonCounts
		want    string
	}{
		{"duplicates and drops", api.ReasonCounts{{Reason: "reverse-path", Value: 90}, {Reason: "mtu-exceeded",
			Value: 3}}, `
COUNTER                VALUE
packetsOutDropped         93
  of these filtered       90
refused, reverse-path     90
refused, mtu-exceeded      3

filtered: duplicates that`},
		{"drops", api.ReasonCounts{{Reason: "mtu-exceeded", Value: 93}}, `
COUNTER                VALUE
packetsOutDropped         93
refused, mtu-exceeded     93
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &standIn{stats: []api.Stats{{Switch: "lab", Name: "vm1", Refused: row.refused,
				Counters: api.Counters{{Name: "packetsOutDropped", Value: 93}}}}}
			text := newConsole(t, s).must("stats", "vm1")
			if !strings.Contains(text, row.want) || strings.Contains(text, "filtered:") != strings.Contains(row.want,
				"filtered:") {
				t.Errorf("%s", text)
			}
		})
	}
}
