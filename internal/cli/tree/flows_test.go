package tree

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

// flowAnswers are a stand-in's answers about flows.
type flowAnswers struct {
	list    api.FlowList
	tops    []api.FlowTop
	records []api.FlowRecords
	sums    []api.FlowSums
	status  api.FlowStatus
	told    bool // the records are sent once: the next request gets an error
}

func (s *standIn) Flows(_ context.Context, q api.FlowQuery) (*api.FlowList, error) {
	return &s.flows.list, s.note(q)
}

func (s *standIn) FlowTop(ctx context.Context, q api.FlowTopQuery, emit func(api.FlowTop) error) error {
	if err := s.note(q); err != nil {
		return err
	}
	for _, t := range s.flows.tops {
		if err := emit(t); err != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) FlowRecords(_ context.Context, q api.FlowFilter, emit func(api.FlowRecords) error) error {
	if s.flows.told {
		return api.NewError(api.Internal, "asked again")
	}
	s.flows.told = true
	if err := s.note(q); err != nil {
		return err
	}
	for _, b := range s.flows.records {
		if err := emit(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) FlowSums(_ context.Context, q api.FlowSumQuery, emit func(api.FlowSums) error) error {
	if q.Of == api.SumsOfRecords {
		if s.flows.told {
			return api.NewError(api.Internal, "asked again")
		}
		s.flows.told = true
	}
	if err := s.note(q); err != nil {
		return err
	}
	for _, t := range s.flows.sums {
		if err := emit(t); err != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) FlowStatus(context.Context) (*api.FlowStatus, error) { return &s.flows.status, s.err }

// someFlows returns flows of each kind.
func someFlows() (web, ping, arp api.Flow) {
	at := time.Now()
	web = api.Flow{Switch: "lab", Port: "vm1/eth0", PortGroup: "web", Direction: "ingress",
		VLAN: plan.SegmentOf(100, false), Protocol: "tcp", Source: netip.MustParseAddr("192.0.2.1"),
		Destination: netip.MustParseAddr("198.51.100.7"), SourcePort: 40000, DestinationPort: 443,
		FlowCounts: api.FlowCounts{Packets: 12, Bytes: 3456, FrameBytes: 3624},
		First:      at.Add(-5 * time.Second), Last: at, In: "vm1/eth0", Out: "uplink1",
		TCPFlags: []api.TCPFlag{api.TCPSyn, api.TCPAck}}
	ping = api.Flow{Switch: "lab", Port: "uplink1", Uplink: true, Direction: "egress", VLAN: plan.SegmentOf(0, false),
		Protocol: "icmp6", ICMP: &api.ICMPMessage{Type: 128},
		Source:      netip.MustParseAddr("2001:db8:1:2:3:4:5:6"),
		Destination: netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
		FlowCounts:  api.FlowCounts{Packets: 1 << 40, Bytes: 1 << 60}, Last: at.Add(-time.Hour)}
	arp = api.Flow{Switch: "lab", Port: strings.Repeat("n", 63), Direction: "ingress", VLAN: plan.SegmentOf(4094, true),
		Protocol: "arp", SourceMAC: plan.MAC{2, 0, 0, 0, 0, 1},
		DestinationMAC: plan.MAC{255, 255, 255, 255, 255, 255}, FlowCounts: api.FlowCounts{Packets: 1, Bytes: 28},
		Last: at}
	return web, ping, arp
}

func TestFlowsListShowsTheEndsOfEveryKindOfFlow(t *testing.T) {
	web, ping, arp := someFlows()
	s := &standIn{flows: flowAnswers{list: api.FlowList{Flows: []api.Flow{web}, Total: 1, Kept: 5, Metered: true}}}
	c := newConsole(t, s)
	c.width = cli.TableWidth
	want := "PORT      DIR  VLAN  PROTO  SOURCE           DESTINATION       PACKETS  BYTES  LAST\n" +
		"vm1/eth0  in   100   tcp    192.0.2.1:40000  198.51.100.7:443       12   3456    0s\n"
	if d := cmp.Diff(want, c.must("flows", "list")); d != "" {
		t.Error(d)
	}
	s.flows.list = api.FlowList{Flows: []api.Flow{web, ping, arp}, Total: 1000, Kept: 5000, Metered: true}
	text := c.must("flows", "list", "--sort", "last", "--limit", "3")
	for _, part := range []string{"uplink1 ^", "out", "icmp6 128/0", "2001:db8:1", "02:00:00:00:00:", "1.2E", "1h",
		"3 of 1000 flows that match"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cli.TableWidth {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	for text, list := range map[string]api.FlowList{"nothing is metered": {Note: api.FlowNote{Code: api.NothingMetered,
		Text: "nothing is metered: do this"}},
		"no flow matches, of 5 flows kept":              {Kept: 5, Metered: true},
		"one packet in 10 is metered (samplingRate: 9)": {Kept: 5, Metered: true, SamplingRate: 9}} {
		t.Run(text, func(t *testing.T) {
			s.flows.list = list
			if out := c.must("flows", "list"); !strings.Contains(out, text) {
				t.Errorf("no %q in %s", text, out)
			}
		})
	}
}

func TestFlowsAskForWhatWasSaid(t *testing.T) {
	t.Parallel() // it waits
	s := &standIn{}
	c := newConsole(t, s)
	all := strings.Fields("--switch lab --port p --uplink u --port-group g --address 192.0.2.0/24 --protocol udp " +
		"--l4port 53 --direction egress")
	f := api.FlowFilter{Switch: "lab", Port: "p", Uplink: "u", PortGroup: "g", Address: "192.0.2.0/24", Protocol: "udp",
		L4Port: 53, Direction: "egress"}
	c.must(append(strings.Fields("flows list --sort packets --limit 9"), all...)...)
	c.run(append(strings.Fields("flows watch"), all...)...)
	s.flows.tops = []api.FlowTop{{}}
	c.must(append(strings.Fields("flows top --once --sort packets --limit 7 --interval 2s"), all...)...)
	want := []any{api.FlowQuery{FlowFilter: f, Sort: "packets", Limit: 9}, f,
		api.FlowTopQuery{FlowFilter: f, Sort: "packets", Limit: 7, Interval: 2 * time.Second}}
	if d := cmp.Diff(want, s.asked); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"list --sort size", "list --limit 0", "list --limit 20001", "list -o xml",
		"top --sort bytes", "top --interval 100ms", "top --limit 1001",
		"top --count -1", "top --count 3", "top -o xml", "watch -o xml", "list x"} {
		if _, errs, status := c.run(append([]string{"flows"}, strings.Fields(bad)...)...); status != cli.ExitUsage ||
			errs == "" {
			t.Errorf("%s: status %d, %q", bad, status, errs)
		}
	}
}

func TestFlowsWatchPrintsRecordsAsTheyCome(t *testing.T) {
	t.Parallel() // it waits
	web, ping, _ := someFlows()
	s := &standIn{flows: flowAnswers{
		records: []api.FlowRecords{{Note: api.FlowNote{Code: api.PortNotMetered, Text: "port vm2 is not metered"}},
			{Note: api.FlowNote{Code: api.PortNotMetered, Text: "port vm2 is not metered"}},
			{Records: []api.FlowRecord{{Flow: web, Reason: "idle",
				Reverse: &api.FlowReverse{FlowCounts: api.FlowCounts{Packets: 8, Bytes: 99}}}}, Missed: 4},
			{Records: []api.FlowRecord{{Flow: ping, Reason: "active"}}}}}}
	out, errs := s.watch(t)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "idle          vm1/eth0 ingress tcp  192.0.2.1:40000 → "+
		"198.51.100.7:443  12 packets, 3456 bytes in 5s; back 8 packets, 99 bytes; SYN ACK") {
		t.Errorf("%q", lines)
	}
	if !strings.Contains(errs, "4 records") || strings.Count(errs, "port vm2 is not metered") != 1 ||
		!strings.Contains(errs, "the agent has ended") {
		t.Errorf("%q", errs)
	}
	out, _ = s.watch(t, "-o", "json")
	d, n := json.NewDecoder(strings.NewReader(out)), 0
	for ; d.More(); n++ {
		var r api.FlowRecord
		if err := d.Decode(&r); err != nil || r.Reason == "" || r.Port == "" {
			t.Errorf("%+v %v", r, err)
		}
	}
	if n != 2 {
		t.Errorf("%d records in %s", n, out)
	}
}

// watch runs "heddle flows watch" until it connects to the agent that replaces this one.
func (s *standIn) watch(t *testing.T, args ...string) (out, errs string) {
	t.Helper()
	s.flows.told = false
	out, errs, _ = newConsole(t, s).run(append([]string{"flows", "watch"}, args...)...)
	if !strings.Contains(errs, "asked again") {
		t.Errorf("the agent's end is the end: %s", errs)
	}
	return out, errs
}

func TestFlowsTopPrintsRates(t *testing.T) {
	web, ping, _ := someFlows()
	s := &standIn{flows: flowAnswers{tops: []api.FlowTop{{Time: time.Now(), Metered: true, SamplingRate: 9, Matching: 9,
		Active: 2, Sum: api.FlowRates{Packets: 1001, Bits: 8e6},
		Flows: []api.FlowRate{{Flow: web, Rates: api.FlowRates{Packets: 1, Bits: 8e6}},
			{Flow: ping, Rates: api.FlowRates{Packets: 1000, Bits: 7}}}}, {Metered: true}}}}
	c := newConsole(t, s)
	c.width = cli.TableWidth
	text := c.must("flows", "top", "--batch", "--count", "1", "--protocol", "tcp")
	for _, part := range []string{"every 1s  only protocol tcp",
		"9 flows, 2 active   1.0k pkt/s   8M bit/s   each packet counted once, of one in 10", "BIT/s↓",
		"vm1/eth0      in  100     tcp"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cli.TableWidth {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	if text = c.must("flows", "top", "--once", "--sort", "packets"); strings.Index(text, "uplink1 ^") > strings.Index(
		text, "vm1/eth0") {
		t.Errorf("not by packets:\n%s", text)
	}
	var one api.FlowTop
	if err := json.Unmarshal([]byte(c.must("flows", "top", "-o", "json", "-n", "1")), &one); err != nil ||
		len(one.Flows) != 2 {
		t.Errorf("%+v %v", one, err)
	}
}

func TestFlowsStatusShowsTablesCollectorsAndLosses(t *testing.T) {
	s := &standIn{flows: flowAnswers{
		status: api.FlowStatus{Switches: []api.FlowSwitch{{Switch: "lab", Metered: 3, Flows: 7, MaxFlows: 1000,
			Records: 50, SamplingRate: 1,
			Counted: api.FlowCounts{Packets: 900}, InRecords: api.FlowCounts{Packets: 800},
			Overflow: api.FlowCounts{Packets: 5}, Problem: "no room",
			Collectors: []api.FlowCollector{{Collector: "flows.example.net:4739", Shape: "standard", State: "resolving",
				Lost: 12, LastError: "no such host",
				LostSince: time.Date(2026, 11, 20, 9, 0, 0, 0, time.Local), LastLost: time.Date(2026, 11, 22, 15, 10,
					12, 0, time.Local)},
				{Collector: "192.0.2.9:4739", Transport: "udp", Shape: "vds", State: "sending",
					Address: "192.0.2.9:4739", Messages: 3, Records: 9, LostSince: time.Now()}},
			Losses: []api.FlowLoss{{Port: "vm1/eth0", FlowCounts: api.FlowCounts{Packets: 66}}}}}}}}
	c := newConsole(t, s)
	want := "SWITCH  METERED  FLOWS  MAX FLOWS  RECORDS  PACKETS  IN RECORDS  NO ROOM\n" +
		"lab           3      7       1000       50      900         800        5\n\n" +
		"COLLECTOR               SHAPE     STATE      ADDRESS         MESSAGES  RECORDS  LOST\n" +
		"flows.example.net:4739  standard  resolving  -                      0        0    12\n" +
		"192.0.2.9:4739          vds       sending    192.0.2.9:4739         3        9     0\n" +
		"collector flows.example.net:4739 of switch lab: no such host\n" +
		"collector flows.example.net:4739 of switch lab: 12 records lost since 2026-11-20 09:00:00, the last at " +
		"2026-11-22 15:10:12\n" +
		"sending: nothing was refused; UDP does not say whether records arrive\n\n" +
		"SWITCH  PORT      NOT RECORDED  BYTES  FRAME BYTES\n" +
		"lab     vm1/eth0            66      0            0\n" +
		"switch lab: one packet in 2 is metered (samplingRate: 1): counts are of those alone\n" +
		"switch lab: no room\n"
	if d := cmp.Diff(want, c.must("flows", "status")); d != "" {
		t.Error(d)
	}
	var got api.FlowStatus
	if err := json.Unmarshal([]byte(c.must("flows", "status", "-o", "json")), &got); err != nil ||
		!cmp.Equal(got, s.flows.status) {
		t.Errorf("%+v %v", got, err)
	}
}
