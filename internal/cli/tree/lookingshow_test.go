package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/network"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const awaySays = "heddle: host esx3 does not answer: it is not connected to a controller\n"

// shownHost is a host with a switch and these ports, all in port group web.
func shownHost(mtu int, ports ...api.Port) *standIn {
	s := &standIn{state: api.State{
		Switches: []api.Switch{{Name: "dvs", Kind: spec.Distributed, MTU: mtu, PortGroups: 1, Ports: len(ports),
			PortsUp: len(ports), Uplinks: []string{"uplink1"}, UplinksUp: 1}},
		PortGroups: []api.PortGroup{{Switch: "dvs", Name: "web", Ports: len(ports), PortsUp: len(ports),
			Overrides: []string{"blocked"}, Policy: []plan.Row{{Policy: "vlan", Value: plan.FieldValueOf("access 10"),
				From: plan.Source{Level: plan.FromPortGroup, Name: "web"}}}}},
		Uplinks: []api.Uplink{{Switch: "dvs", Name: "uplink1", Device: "eno2", State: api.Up, Speed: 25e9}},
		Ports:   ports}}
	return s
}

func portOfVM(name, uuid string) api.Port {
	return api.Port{Switch: "dvs", Name: name, PortGroup: "web", State: api.Up, Device: "tap0", VM: uuid}
}

func threeShown(t *testing.T) *fleetStand {
	t.Helper()
	f := newFleetStand(t, map[string]*standIn{
		"esx1": shownHost(1500, portOfVM("web1/eth0", "5f3c9d0e"), portOfVM("db/eth0", "aaaa"),
			portOfVM("db/eth1", "aaaa")),
		"esx2": shownHost(1500, portOfVM("web1/eth0", "77777777")), "esx3": nil})
	f.ports = []*controllerv1.FleetPort{{Host: "esx3", Switch: "dvs", Name: "gone/eth0", PortGroup: "web", State: "up",
		Vm: "bbbb", Stale: true}, {Host: "esx1", Switch: "dvs", Name: "gone/eth0"}}
	f.definition = "switches:\n- name: dvs\n  portGroups: [{name: web}]\n"
	return f
}

// A port is found on whichever host has it, by its name or its VM; one that is meant is named where several are.
func TestPortShow_OnWhicheverHost(t *testing.T) {
	f := threeShown(t)
	for _, row := range []struct {
		name   string
		status int
		says   []string // lines of the output, or the error
	}{
		{"5f3c9d0e", 0, []string{"host: esx1", "port: web1/eth0"}},
		{"77777777", 0, []string{"host: esx2", "port: web1/eth0"}},
		{"esx2:web1/eth0", 0, []string{"host: esx2", "vm: 77777777"}},
		{"esx2:web1", 0, []string{"host: esx2", "vm: 77777777"}},
		{"db/eth1", 0, []string{"host: esx1", "port: db/eth1"}},
		{"web1/eth0", 2, []string{"2 ports are called web1/eth0: say which, as esx1:web1/eth0 or esx2:web1/eth0"}},
		{"db", 2, []string{"2 ports are called db: say which, as esx1:db/eth0 or esx1:db/eth1"}},
		{"gone/eth0", 1, []string{"host: esx3", "state: stale: it was up when its host was heard last",
			strings.TrimSpace(awaySays)}},
		{"bbbb", 1, []string{"host: esx3", "vm: bbbb"}},
		{"nobody", 1, []string{"no host that answers has a port or VM nobody (heddle port list)",
			strings.TrimSpace(awaySays)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, errs, status := f.run("port", "show", row.name)
			text := strings.Join(strings.Fields(out+errs), " ")
			for _, want := range row.says {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s%s", want, out, errs)
				}
			}
			if status != row.status {
				t.Errorf("status %d, want %d", status, row.status)
			}
		})
	}
	out, _, _ := f.run("port", "show", "db/eth1", "-o", "json")
	var got struct{ Host, Name string }
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Host != "esx1" || got.Name != "db/eth1" {
		t.Errorf("%v: %s", err, out)
	}
	if out, errs, status := f.run("port", "show", "web1", "--host", "esx2"); status != 0 ||
		!strings.Contains(out, "77777777") || strings.Contains(out, "host:") {
		t.Errorf("on one host: %d %s%s", status, out, errs)
	}
	if _, errs, status := f.run("port", "show", "db", "--host", "esx1"); status != 2 ||
		!strings.Contains(errs, "db has 2 ports: say which, as db/eth0 or db/eth1") {
		t.Errorf("two on one host: %d %s", status, errs)
	}
}

// Other objects are found the same way.
func TestShow_OnWhicheverHost(t *testing.T) {
	f := threeShown(t)
	if out, _, status := f.run("uplink", "show", "esx1:uplink1"); status != 0 || !strings.HasPrefix(out, "host:") {
		t.Errorf("%d %s", status, out)
	}
	f.says(2, "", awaySays+"heddle: 2 uplinks are called uplink1: say which, as esx1:uplink1 or esx2:uplink1\n",
		"uplink", "show", "uplink1")
	if _, errs, status := f.run("show", "effective", "nobody"); status != 1 || !strings.Contains(errs, "esx3") {
		t.Errorf("%d %s", status, errs)
	}
	if out, errs, status := f.run("show", "effective", "db/eth1"); status != 0 || !strings.Contains(out, "db/eth1") {
		t.Errorf("%d %s%s", status, out, errs)
	}
}

// A switch is shown as all hosts have it, with the host that differs.
func TestSwitchShow_OfAllHosts(t *testing.T) {
	f := threeShown(t)
	f.says(1, `switch:                         dvs
declared in:                    the definition, revision 18
hosts:                          2
ports up:                       4 of 4
kind:                           distributed
mtu:                            1500
port groups:                    1
checks.reversePath:             false
checks.reversePathPromiscuous:  false
checks.blockGuestBPDU:          false

HOST  PORTS UP  UPLINKS                DIFFERS
esx1  3 of 3    uplink1 (up, 25 Gb/s)  -
esx2  1 of 1    uplink1 (up, 25 Gb/s)  -
`, awaySays, "switch", "show", "dvs")
	f.hosts["esx3"] = shownHost(9000)
	f.definition = "switches: []\n"
	out, errs, status := f.run("switch", "show", "dvs", "-o", "json")
	var got network.FleetObject
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || errs != "" || got.Revision != 0 ||
		len(got.Hosts) != 3 || len(got.Hosts[1].Differs) != 0 || len(got.Hosts[2].Differs) != 1 ||
		got.Hosts[2].Differs[0] != (network.Setting{Field: "mtu", Value: "9000"}) {
		t.Errorf("%v: %d %s%s", err, status, out, errs)
	}
	if out, _, _ := f.run("switch", "show", "dvs"); !strings.Contains(out, "the hosts' own files") ||
		!strings.Contains(out, "mtu: 9000") {
		t.Error(out)
	}
	f.says(1, "", "heddle: there is no switch dvz; did you mean dvs?\n", "switch", "show", "dvz")
}

// A port group is shown as all hosts have it.
func TestPortGroupShow_OfAllHosts(t *testing.T) {
	f := threeShown(t)
	f.hosts["esx3"] = shownHost(1500)
	f.hosts["esx3"].state.PortGroups[0].Policy[0].Value = plan.FieldValueOf("access 20")
	f.says(0, `port group:   web
switch:       dvs
declared in:  the definition, revision 18
hosts:        3
ports up:     4 of 4

POLICY               VALUE      FROM
overlay segment      -          -
a port may set       blocked    -
reset at disconnect  false      -
vlan                 access 10  port group web

HOST  PORTS UP  DIFFERS
esx1  3 of 3    -
esx2  1 of 1    -
esx3  0 of 0    vlan: access 20 (port group web)
`, "", "port-group", "show", "web")
}

// The ports of all hosts are in one live view, by rate; a host that does not answer is named.
func TestTop_OfAllHosts(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{"esx1": {}, "esx2": {}, "esx3": nil})
	counters := func(n uint64, at int64) []api.Stats {
		return []api.Stats{{Switch: "dvs", Name: "vm/eth0", PortGroup: "web", ReadAt: at, Counters: api.Counters{
			{Name: "packetsInUnicast", Value: n}, {Name: "bytesInUnicast", Value: 125 * n}}}}
	}
	f.hosts["esx1"].readings = [][]api.Stats{counters(0, 0), counters(1000, 1e9)}
	f.hosts["esx2"].readings = [][]api.Stats{counters(0, 0), counters(9000, 1e9)}
	out, errs, status := f.run("top", "--once", "--interval", "100ms")
	lines := strings.Split(out, "\n")
	if status != 1 || errs != awaySays || len(lines) != 7 || !strings.HasPrefix(lines[0], "heddle top  all hosts ") ||
		lines[2] != "no answer from esx3" || !strings.HasPrefix(lines[3], "HOST   PORT ") ||
		!strings.HasPrefix(lines[4], "esx2   vm/eth0             9M ") ||
		!strings.HasPrefix(lines[5], "esx1   vm/eth0             1M ") {
		t.Errorf("status %d %s\n%s", status, errs, out)
	}
	f.hosts["esx1"].readings = [][]api.Stats{counters(0, 0), counters(1000, 1e9)}
	f.hosts["esx2"].readings = [][]api.Stats{counters(0, 0), counters(9000, 1e9)}
	out, _, _ = f.run("top", "--once", "--interval", "100ms", "--sort", "host", "-o", "json")
	var got struct {
		Rows []struct{ Host, Port string }
		Away []string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Rows) != 2 || got.Rows[0].Host != "esx1" ||
		len(got.Away) != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// The accounts of all hosts are in one table.
func TestStatsCheck_OfAllHosts(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{
		"esx1": {accounts: []api.PortAccount{{Switch: "dvs", Name: "a", State: "exact"}}},
		"esx2": {accounts: []api.PortAccount{{Switch: "dvs", Name: "a", State: "exact"},
			{Switch: "dvs", Name: "b", State: "broken", Received: 5, Fault: "one is missing"}}}})
	f.says(1, `HOST  SWITCH  PORT  RECEIVED  DELIVERED  DROPPED  WITHOUT A FATE  ACCOUNTS
esx2  dvs     b            5          0        0               0  broken: one is missing
2 of 3 ports and uplinks were at rest, and every frame received has its fate
`, "heddle: the counters of 1 of 3 ports and uplinks do not add up\n", "stats", "--check")
}

// Sums of all hosts are those of each together.
func TestFlowsBy_OfAllHosts(t *testing.T) {
	sums := func(tcp, arp uint64) api.FlowSums {
		row := func(name string, n uint64) api.FlowSum {
			return api.FlowSum{Name: name, Flows: 1, FlowCounts: api.FlowCounts{Packets: n, Bytes: 10 * n,
				FrameBytes: 10 * n}}
		}
		return api.FlowSums{By: api.ByProtocol, Metered: true, Rows: []api.FlowSum{row("tcp", tcp), row("arp", arp)},
			Total: row("total", tcp+arp)}
	}
	f := newFleetStand(t, map[string]*standIn{"esx1": {}, "esx2": {}})
	f.hosts["esx1"].flows.sums = []api.FlowSums{sums(10, 5)}
	f.hosts["esx2"].flows.sums = []api.FlowSums{sums(20, 65)}
	f.says(0, `PROTOCOL  FLOWS  PACKETS  BYTES    SHARE
arp           2       70    700   70.0 %
tcp           2       30    300   30.0 %
total         2      100   1000  100.0 %
the sums are of all hosts: what passes between two of them is counted on both
`, "", "flows", "list", "--by", "protocol")
}

// Flows by rate have their host; a host that is away is named, and Ctrl-C is no fault.
func TestFlowsTop_OfAllHosts(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{"esx1": {}, "esx2": {}, "esx3": nil})
	for host, bits := range map[string]float64{"esx1": 1000, "esx2": 5000} {
		f.hosts[host].flows.tops = []api.FlowTop{{Time: time.Now(), Metered: true, Matching: 1, Active: 1,
			Sum: api.FlowRates{Bits: bits}, Flows: []api.FlowRate{{Flow: api.Flow{Port: "vm/eth0", Protocol: "tcp"},
				Rates: api.FlowRates{Bits: bits}}}}}
	}
	out, errs, status := f.run("flows", "top", "--once")
	if status != 0 ||
		errs != "heddle: host esx3 does not answer: it is not connected to a controller; it goes on, and "+
			"its flows are followed when it answers\n" || !strings.Contains(out, "no answer from esx3\nHOST PORT ") ||
		!strings.Contains(out, "\nesx2 vm/eth0 ") || strings.Index(out, "\nesx1 ") < strings.Index(out, "\nesx2 ") ||
		!strings.Contains(out, "2 flows, 2 active") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	f.hosts["esx3"] = &standIn{}
	f.hosts["esx3"].flows.tops = []api.FlowTop{{}}
	out, _, _ = f.run("flows", "top", "--once", "-o", "json")
	var got struct {
		Flows    []struct{ Host, Port string }
		Matching int
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Flows) != 2 || got.Flows[0].Host != "esx2" ||
		got.Matching != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

// Records of all hosts are printed as they come, with their host, until somebody interrupts it.
func TestFlowsWatch_OfAllHosts(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{"esx1": {}, "esx2": {}})
	for _, s := range f.hosts {
		s.flows.records = []api.FlowRecords{{Records: []api.FlowRecord{{Reason: "idle"}}}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var came atomic.Int64
	out := &countedText{came: func() {
		if came.Add(1) == 2 {
			cancel()
		}
	}}
	status := Run(ctx, cli.Deps{Stdin: strings.NewReader(""), Stdout: out, Stderr: &out.errs,
		Getenv: func(k string) string {
			return map[string]string{"HEDDLE_CONTROLLER": f.socket}[k]
		}}, []string{"flows", "watch", "-o", "json"})
	if text := out.String(); status != 0 || !strings.Contains(text, `{"host":"esx1"`) ||
		!strings.Contains(text, `{"host":"esx2"`) {
		t.Errorf("status %d: %s%s", status, text, out.errs.String())
	}
}

// countedText is what is printed, and says when something comes.
type countedText struct {
	bytes.Buffer
	errs bytes.Buffer
	came func()
}

func (c *countedText) Write(b []byte) (int, error) {
	defer c.came()
	return c.Buffer.Write(b)
}

// What is not for all hosts says so, and what to do.
func TestLooking_OneHostAtATime(t *testing.T) {
	f := threeShown(t)
	for _, args := range []string{"flows status", "config show", "config history", "lag show lag1"} {
		f.says(2, "", "heddle: this shows one host at a time: name it with --host (heddle host list)\n",
			strings.Fields(args)...)
	}
	if out, errs, status := f.run("flows", "status", "--host", "esx1"); status != 0 {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	for args, command := range map[string]string{"port block vm --controller x": "port block",
		"uplink drain u --host esx1": "uplink drain"} {
		flag := "controller"
		if strings.Contains(args, "--host") {
			flag = "host"
		}
		f.says(2, "", "heddle: --"+flag+": \"heddle "+command+"\" is for the agent of one host, and does not go by "+
			"way of a controller: run it on that host\n", strings.Fields(args)...)
	}
}
