package tree

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// troubled returns a stand-in with ports of every kind of trouble, and one with long names.
func troubled() *standIn {
	access := func(id uint16) plan.VLAN { return plan.VLAN{Mode: plan.VLANAccess, ID: id} }
	trunk := plan.VLAN{Mode: plan.VLANTrunk}
	trunk.Set.AddRange(10, 12)
	now := time.Now()
	learning := []plan.Row{{Policy: "security.macLearning.enabled", Value: plan.FieldValueOf(true)},
		{Policy: "security.macLearning.limit", Value: plan.FieldValueOf(16)},
		{Policy: "security.addressGuard.addresses", Value: plan.FieldValueOf([]string{"192.0.2.10", "2001:db8::/64"})}}
	up := []string{"uplink1"}
	s := &standIn{state: api.State{
		Switches: []api.Switch{{Name: "lab"}, {Name: "dmz"}},
		PortGroups: []api.PortGroup{{Switch: "lab", Name: "web"}, {Switch: "lab", Name: "customer-acme-production-web"},
			{Switch: "dmz", Name: "front"}},
		Uplinks: []api.Uplink{{Switch: "lab", Name: "uplink1", State: api.Up},
			{Switch: "lab", Name: "uplink2", State: api.Up}},
		Ports: []api.Port{
			{Switch: "lab", Name: "vm1/eth0", PortGroup: "web", Role: spec.VNIC, Origin: api.FromFile, State: api.Up,
				VLAN: access(10), Uplinks: up,
				Violation: "its adapter uses the address of vm2", ViolationCode: observe.AddressInUse,
				MAC: "02:00:00:00:01:01", Device: "tap1", MTU: 1500, Owner: "vm1"},
			{Switch: "lab", Name: "customer-acme-production-frontend-1/eth0", PortGroup: "customer-acme-production-web",
				Origin: api.FromRun, State: api.Up,
				VLAN: trunk, Uplinks: []string{"uplink2"}, Effective: learning, MAC: "02:00:00:00:01:02",
				Device: "tap2", MTU: 1500},
			{Switch: "lab", Name: "vm3/eth0", PortGroup: "web", Origin: api.FromFile, State: api.Pending,
				VLAN:   access(10),
				Reason: "there is no device tap3", ReasonCode: problem.DeviceMissing,
				Overrides: []api.Override{{Field: "portGroup", Value: plan.FieldValueOf("web"),
					File: plan.FieldValueOf("db")}}},
			{Switch: "dmz", Name: "vm4/eth0", PortGroup: "front", Origin: api.FromFile, State: api.Up,
				Refused: []api.Refusal{{Reason: "forged-transmit", MAC: "02:00:00:00:09:09",
					Time: now.Add(-time.Minute)}}},
			{Switch: "dmz", Name: "vm5/eth0", PortGroup: "front", Origin: api.FromFile, State: api.Up,
				Refused: []api.Refusal{{Reason: "forged-transmit", MAC: "02:00:00:00:09:09",
					Time: now.Add(-time.Hour)}}},
			{Switch: "dmz", Name: "vm6/eth0", PortGroup: "front", Origin: api.FromFile, State: api.Up,
				Refused: []api.Refusal{{Reason: "forged-transmit", MAC: "02:00:00:00:09:09", Past: true,
					Time: now.Add(-time.Minute)}}},
			{Switch: "dmz", Name: "vm7/eth0", PortGroup: "front", Origin: api.FromFile, State: api.Up,
				Refused: []api.Refusal{{Reason: "mac-limit", MAC: "02:00:00:00:09:09",
					Time: now.Add(-time.Minute)}}},
			{Switch: "dmz", Name: "vm8/eth0", PortGroup: "front", Origin: api.FromFile, State: api.Up,
				Refused: []api.Refusal{{Reason: "mac-table-full", MAC: "02:00:00:00:09:09", Passed: true,
					Time: now.Add(-time.Minute)}}},
			{Switch: "dmz", Name: "vm9/eth0", PortGroup: "front", Origin: api.FromFile, State: api.Up,
				Reason: "none of the uplinks that its teaming names can be used: up1", ReasonCode: problem.NoUplink},
		},
	}}
	s.macs = []api.MAC{{Switch: "lab", Port: "customer-acme-production-frontend-1/eth0", Kind: "learned"},
		{Switch: "lab", Port: "customer-acme-production-frontend-1/eth0", Kind: "learned"},
		{Switch: "lab", Port: "vm1/eth0", Kind: "port"}}
	s.flows.list.Flows = []api.Flow{
		{Switch: "lab", Port: "vm1/eth0", Direction: "ingress", Source: netip.MustParseAddr("192.0.2.1")},
		{Switch: "lab", Port: "vm1/eth0", Direction: "ingress", Source: netip.MustParseAddr("192.0.2.1")},
		{Switch: "lab", Port: "vm1/eth0", Direction: "egress", Source: netip.MustParseAddr("192.0.2.99")},
		{Switch: "lab", Port: "vm1/eth0", Direction: "ingress", Source: netip.MustParseAddr("0.0.0.0")}}
	return s
}

func TestPortList_ShowsTroubleAndTheUplink(t *testing.T) {
	c := newConsole(t, troubled())
	want :=
		`SWITCH  PORT                                      PORT GROUP                    VLAN         STATE    UPLINK   SOURCE        PROBLEM
lab     vm1/eth0                                  web                           access 10    up       uplink1  file          address-in-use
lab     customer-acme-production-frontend-1/eth0  customer-acme-production-web  trunk 10-12  up       uplink2  run-time      -
lab     vm3/eth0                                  web                           access 10    pending  -        file+command  device-missing
dmz     vm4/eth0                                  front                         none         up       -        file          refused forged-transmit
dmz     vm5/eth0                                  front                         none         up       -        file          -
dmz     vm6/eth0                                  front                         none         up       -        file          -
dmz     vm7/eth0                                  front                         none         up       -        file          mac-limit
dmz     vm8/eth0                                  front                         none         up       -        file          mac-table-full
dmz     vm9/eth0                                  front                         none         up       -        file          no-uplink
port lab/vm3/eth0: the file says port group db; apply leaves it in web
`
	if d := cmp.Diff(want, c.must("port", "list")); d != "" {
		t.Error(d)
	}
}

func TestPortList_NamesAreWholeWhereThereIsRoom(t *testing.T) {
	const port, group = "customer-acme-production-frontend-1/eth0", "customer-acme-production-web"
	for _, row := range []struct {
		width int
		whole bool
	}{{0, true}, {80, false}, {100, false}, {140, true}, {200, true}} {
		t.Run(fmt.Sprint(row.width), func(t *testing.T) {
			c := newConsole(t, troubled())
			c.width = row.width
			text := c.must("port", "list")
			if got := strings.Contains(text, port+"  ") && strings.Contains(text, group+"  "); got != row.whole {
				t.Errorf("names whole: %v\n%s", got, text)
			}
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); row.width > 0 && n > row.width {
					t.Errorf("a line of %d characters: %s", n, line)
				}
			}
		})
	}
}

func TestPortList_Filters(t *testing.T) {
	const long = "customer-acme-production-frontend-1/eth0"
	for _, row := range []struct{ args, want string }{
		{"--port-group web", "vm1/eth0 vm3/eth0"},
		{"--state up --switch lab", "vm1/eth0 " + long},
		{"--state pending,down", "vm3/eth0"},
		{"--vlan 10", "vm1/eth0 " + long + " vm3/eth0"},
		{"--vlan 11", long},
		{"--vlan 0", "vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0"},
		{"--uplink uplink2 --switch lab", long},
		{"--uplink uplink1", "vm1/eth0"},
		{"--sort port", long + " vm1/eth0 vm3/eth0 vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0"},
		{"--sort switch", "vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0 vm1/eth0 " + long + " vm3/eth0"},
		{"--sort state", "vm3/eth0 vm1/eth0 " + long + " vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0"},
		{"--sort problem", "vm1/eth0 vm3/eth0 vm7/eth0 vm8/eth0 vm9/eth0 vm4/eth0 " + long + " vm5/eth0 vm6/eth0"},
		{"--sort pg", long + " vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0 vm1/eth0 vm3/eth0"},
		{"--sort uplink", "vm3/eth0 vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0 vm1/eth0 " + long},
		{"--sort vlan", "vm4/eth0 vm5/eth0 vm6/eth0 vm7/eth0 vm8/eth0 vm9/eth0 vm1/eth0 vm3/eth0 " + long},
	} {
		t.Run(row.args, func(t *testing.T) {
			c := newConsole(t, troubled())
			var list []api.Port
			text := c.must(append([]string{"port", "list", "-o", "json"}, strings.Fields(row.args)...)...)
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range list {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

func TestPortList_RefusesWhatNoPortCanHave(t *testing.T) {
	for _, row := range []struct {
		args, says string
		status     int
	}{
		{"--switch nope", "there is no switch nope; there are dmz, lab", 1},
		{"--port-group wbe", "there is no port group wbe; did you mean web?", 1},
		{"--port-group front --switch lab", "switch lab has no port group front; it has", 1},
		{"--uplink nope", "there is no uplink nope; there are uplink1, uplink2", 1},
		{"--state gone", `--state "gone": use down, pending, blocked, waiting or up`, 2},
		{"--vlan 4095", "--vlan 4095: it is 1–4094, or 0", 2},
		{"--vlan -1", "--vlan -1: it is 1–4094, or 0", 2},
		{"--sort colour", `--sort "colour": use switch, port,`, 2},
		{"-o xml", `output format "xml": use table, wide, json or yaml`, 2},
	} {
		t.Run(row.args, func(t *testing.T) {
			c := newConsole(t, troubled())
			_, errs, status := c.run(append([]string{"port", "list"}, strings.Fields(row.args)...)...)
			if status != row.status || !strings.Contains(errs, row.says) {
				t.Errorf("status %d: %s", status, errs)
			}
		})
	}
}

func TestPortList_Wide(t *testing.T) {
	c := newConsole(t, troubled())
	lines := strings.Split(c.must("port", "list", "-o", "wide"), "\n")
	for i, want := range []string{
		"SOURCE MAC DEVICE MTU OWNER LEARNED ADDRESSES PROBLEM",
		"file 02:00:00:00:01:01 tap1 1500 vm1 - 192.0.2.1 its adapter uses the address of vm2",
		"run-time 02:00:00:00:01:02 tap2 1500 - 2 of 16 192.0.2.10,2001:db8::/64 -",
		"file+command - - - - - - there is no device tap3",
		"file - - - - - - refused forged-transmit 1m ago, from 02:00:00:00:09:09",
		"file - - - - - - -",
		"file - - - - - - -",
		"file - - - - - - refused mac-limit 1m ago, from 02:00:00:00:09:09",
		"file - - - - - - passed unlearned, mac-table-full 1m ago, from 02:00:00:00:09:09",
		"file - - - - - - none of the uplinks that its teaming names can be used: up1",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasSuffix(got, want) {
			t.Errorf("line %d: %s\nwant %s", i, got, want)
		}
	}
	c.width = 80 // again on a narrow terminal: it still prints, and MACs are not shortened
	if text := c.must("port", "list", "-o", "wide"); !strings.Contains(text, "02:00:00:00:01:01") {
		t.Errorf("%s", text)
	}
	if _, _, status := c.run("switch", "list", "-o", "wide"); status != cli.ExitUsage {
		t.Errorf("a listing without a wide form takes -o wide: status %d", status)
	}
}

// A port's refusals are listed, and whether they are past.
func TestPortShow_SaysWhetherARefusalIsPast(t *testing.T) {
	for _, row := range []struct{ port, want string }{
		{"vm4/eth0", "refused forged-transmit 1m ago, from 02:00:00:00:09:09\n"},
		{"vm6/eth0", "refused forged-transmit 1m ago, from 02:00:00:00:09:09; not since\n"},
	} {
		t.Run(row.port, func(t *testing.T) {
			if text := newConsole(t, troubled()).must("port", "show", row.port); !strings.Contains(text, row.want) {
				t.Errorf("%s", text)
			}
		})
	}
}
