package tree

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"heddle/internal/api"
	"heddle/internal/diagnose"
	"heddle/internal/plan"
)

// longNamed returns a stand-in whose names are long, and whose counters are large.
func longNamed() *standIn {
	const port, group = "customer-acme-production-frontend-1/eth0", "customer-acme-production-web"
	access := plan.VLAN{Mode: plan.VLANAccess, ID: 4094}
	trunk := plan.VLAN{Mode: plan.VLANTrunk}
	trunk.Set.AddRange(10, 12)
	trunk.Set.AddRange(100, 4000)
	const many = 123456789012345
	counters := api.Counters{{Name: "packetsInUnicast", Value: many / 1000}, {Name: "bytesInUnicast", Value: many},
		{Name: "packetsOutUnicast", Value: many / 1000}, {Name: "bytesOutUnicast", Value: many},
		{Name: "packetsInDropped", Value: many / 1000000}, {Name: "packetsOutDropped", Value: many / 1000000}}
	s := &standIn{state: api.State{
		Switches:   []api.Switch{{Name: "production", Uplinks: []string{"uplink1", "uplink2"}}},
		PortGroups: []api.PortGroup{{Switch: "production", Name: group, VLAN: access, Ports: 112, PortsUp: 111}},
		Uplinks: []api.Uplink{{Switch: "production", Name: "uplink-to-rack-12-left", Device: "enp129s0f1np1",
			State: api.Down, Reason: "its device is down or has no carrier", ReasonCode: "link-down", Speed: 25e9,
			LAG: &api.LAGMember{Name: "lag-to-the-racks"}}},
		Ports: []api.Port{
			{Switch: "production", Name: port, PortGroup: group, Origin: api.FromRun, State: api.Up, VLAN: access,
				Uplinks: []string{"uplink1", "uplink2"}, ReasonCode: "no-uplink", Reason: "none of the uplinks"},
			{Switch: "production", Name: "vm2/eth0", PortGroup: group, Origin: api.FromFile, State: api.Pending,
				VLAN: trunk, Refused: []api.Refusal{{Reason: "arp-sender-not-allowed", Time: time.Now()}}}},
	}}
	s.stats = []api.Stats{{Switch: "production", Name: port, PortGroup: group, Counters: counters, ReadAt: 1},
		{Switch: "production", Name: "uplink1", Uplink: true, Counters: counters, ReadAt: 1}}
	s.macs = []api.MAC{{Switch: "production", Port: port, MAC: "02:00:00:00:01:02", Kind: "learned", IdleSeconds: 300,
		VLAN: plan.SegmentOf(4094, true)}}
	s.accounts = []api.PortAccount{{Switch: "production", Name: port, State: "exact", Received: many / 1000,
		Delivered: many / 1000, Dropped: many / 1000}}
	s.flows.list.Flows = []api.Flow{{Switch: "production", Port: port, Direction: "ingress",
		Source: netip.MustParseAddr("2001:db8:1:2:3:4:5:6"), Destination: netip.MustParseAddr("2001:db8::9:8:7:6")}}
	s.hostPorts = []api.HostPort{{Name: "vmk-management-0", Switch: "production", PortGroup: group, Device: "vmk0",
		State: api.Up, Addresses: []string{"192.0.2.100/24", "2001:db8:1:2:3:4:5:6/64"}}}
	return s
}

// Tables fit a terminal of 80 columns, and numbers are never shortened for that.
func TestTablesFit80Columns(t *testing.T) {
	for _, row := range []struct {
		args string
		has  []string // unbroken, in any line
	}{
		{"switch list", []string{"production"}},
		{"port list", []string{"access 4094", "no-uplink", "trunk 10-1…", "pending"}},
		{"port-group list", []string{"access 4094", "111 of 112"}},
		{"uplink list", []string{"25 Gb/s", "link-down"}},
		{"lag list", []string{"0 of 1"}},
		{"mac list", []string{"02:00:00:00:01:02", "4094"}},
		{"stats", []string{"123G", "PKT IN", "OUT DROP", "LOST"}},
		{"stats --by port-group", []string{"PORT GROUP", "PKT IN", "OUT DROP", "LOST"}},
		{"stats --by switch", []string{"production", "247G"}},
		{"stats --rates --interval 1ms", []string{"IN PPS", "OUT BPS", "LOST"}},
		{"stats --check --zero", []string{"123456789012 "}},
		{"flows list", []string{"DIR", "2001:db8:…"}},
		{"flows status", []string{"METERED"}},
		{"host-port list", []string{"vmk0"}},
	} {
		t.Run(row.args, func(t *testing.T) {
			c := newConsole(t, longNamed())
			c.width = 80
			text, errs, status := c.run(strings.Fields(row.args)...)
			if status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if cut := regexp.MustCompile(`(^|\s)[0-9.]+…`).FindString(text); cut != "" {
				t.Errorf("a number is cut: %q\n%s", cut, text)
			}
			for _, want := range row.has {
				if !strings.Contains(text, want) {
					t.Errorf("no %q\n%s", want, text)
				}
			}
		})
	}
}

// Sentences are wrapped to the terminal as tables are fitted to it.
func TestTextsFit80Columns(t *testing.T) {
	long := strings.Repeat("a sentence of some words ", 12)
	s := furnished()
	s.state.Ports = s.state.Ports[:2]
	s.state.Ports[0].State, s.state.Ports[0].Violation = api.Up, long
	s.state.Ports[1].Name, s.state.Ports[1].State, s.state.Ports[1].Reason = strings.Repeat("n", 45), api.Pending, long
	s.advice = api.Advice{Findings: []api.Finding{{Rule: "mtu", Level: api.FindingWrong, Switch: "lab",
		Port: "vm1/eth0",
		Sign: long, Why: long, Change: long, Command: "heddle port show vm1/eth0"}}}
	s.trace.Answer = diagnose.Answer{Verdict: "no", Text: long}
	for _, args := range []string{"status", "advise", "doctor", "lab list", "trace vm1/eth0 vm2/eth0"} {
		t.Run(args, func(t *testing.T) {
			c := newConsole(t, s)
			c.width = 80
			out, errs, _ := c.run(strings.Fields(args)...)
			if out == "" {
				t.Fatal(errs)
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
	if out, _, _ := newConsole(t, s).run("status"); !strings.Contains(out,
		"port vm1/eth0 is in violation: a sentence") {
		t.Errorf("the violation is not named:\n%s", out)
	}
}

// What is empty is a dash also where it would be coloured.
func TestPortShow_AnEmptyViolationIsADash(t *testing.T) {
	c := newConsole(t, furnished())
	c.colour = true
	if out := c.must("port", "show", "vm1/eth0"); !regexp.MustCompile(`(?m)^violation: +-$`).MatchString(out) {
		t.Errorf("%q", out)
	}
}
