package tree

import (
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

// someSums returns the sums of two conversations, out of more.
func someSums(by string) api.FlowSums {
	counts := func(n uint64) api.FlowCounts { return api.FlowCounts{Packets: n, Bytes: 100 * n, FrameBytes: 114 * n} }
	return api.FlowSums{Time: time.Now(), By: by, Metered: true, Rows: []api.FlowSum{
		{Name: "192.0.2.1:40000 – 192.0.2.2:443", Switch: "lab", VLAN: plan.SegmentOf(100, false), Protocol: "tcp",
			Service: "https", Source: netip.MustParseAddr("192.0.2.1"), SourcePort: 40000,
			Destination: netip.MustParseAddr("192.0.2.2"), DestinationPort: 443, Flows: 2, FlowCounts: counts(50),
			Back: counts(20), Share: 0.5, Rates: api.FlowRates{Packets: 5, Bits: 4000}},
		{Name: "[2001:db8:1111:2222:3333:4444:5555:6666]:40000 – [2001:db8:1111:2222:3333:4444:5555:7777]:53",
			Protocol: "udp", Switch: "lab", Flows: 2, FlowCounts: counts(30), Back: counts(3), Share: 0.3},
	}, Rest: api.FlowSum{Name: "others", Groups: 7, Flows: 9, FlowCounts: counts(20), Back: counts(1), Share: 0.2},
		Total: api.FlowSum{Name: "total", Flows: 13, FlowCounts: counts(100), Share: 1,
			Rates: api.FlowRates{Packets: 10, Bits: 8e6}}}
}

func TestFlowsAreSummedUpInTables(t *testing.T) {
	s := &standIn{flows: flowAnswers{sums: []api.FlowSums{someSums(api.ByConversation)}}}
	c := newConsole(t, s)
	c.width = cli.TableWidth
	text := c.must("flows", "list", "--by", "conversation")
	lines := strings.Split(text, "\n")
	for i, want := range []string{"PROTO CLIENT SERVER FLOWS PACKETS BYTES BACK SHARE",
		"tcp 192.0.2.1:40000 192.0.2.2:443 2 50 5000 2000 50.0 %", "udp [2001:", "7 others 9 20 2000 100 20.0 %",
		"total 13 100 10000 100.0 %"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
		if n := utf8.RuneCountInString(lines[i]); n > cli.TableWidth {
			t.Errorf("a line of %d characters: %s", n, lines[i])
		}
	}
	for by, head := range map[string]string{"address": "ADDRESS", "port-group": "SWITCH PORT GROUP",
		"vlan": "SWITCH VLAN", "protocol": "PROTOCOL", "service": "SERVICE NAME"} {
		t.Run(by, func(t *testing.T) {
			s.flows.sums[0].By = by
			text = c.must("flows", "list", "--by", by)
			if got := strings.Join(strings.Fields(text), " "); !strings.HasPrefix(got, head+" FLOWS") ||
				strings.Contains(text, "both its ends") != (by == "address" || by == "port-group") {
				t.Errorf("by %s:\n%s", by, text)
			}
		})
	}
	s.flows.sums[0].Crowded, s.flows.sums[0].SamplingRate = true, 9
	if text = c.must("flows", "list", "--by", "vlan"); !strings.Contains(text, "more rows than are kept apart") ||
		!strings.Contains(text, "one packet in 10 is metered") {
		t.Error(text)
	}
	s.flows.sums[0] = api.FlowSums{By: "vlan", Note: api.FlowNote{Code: api.NothingMetered, Text: "nothing is " +
		"metered: do this"}}
	if text = c.must("flows", "list", "--by", "vlan"); !strings.Contains(text, "nothing is metered: do this") ||
		strings.Contains(text, "total") {
		t.Error(text)
	}
	s.flows.sums[0] = someSums(api.ByConversation)
	var got api.FlowSums
	if err := json.Unmarshal([]byte(c.must("flows", "list", "--by", "conversation", "-o", "json")), &got); err != nil ||
		!cmp.Equal(got.Rows, s.flows.sums[0].Rows, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
		t.Errorf("%+v %v", got, err)
	}
	if text = c.must("flows", "list", "--by", "conversation", "-o", "yaml"); !strings.Contains(text, "service: https") {
		t.Error(text)
	}
}

func TestFlowsTopAndWatchSumUp(t *testing.T) {
	s := &standIn{flows: flowAnswers{sums: []api.FlowSums{someSums(api.ByService), someSums(api.ByService)}}}
	c := newConsole(t, s)
	c.width = cli.TableWidth
	text := c.must("flows", "top", "--by", "service", "--once")
	for _, part := range []string{"every 1s  by service", "13 flows   10 pkt/s   8M bit/s   each packet once",
		"SERVICE", "BIT/s↓", "SHARE", "https", "50.0 %", "7 others"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cli.TableWidth {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	var got api.FlowSums
	if err := json.Unmarshal([]byte(c.must("flows", "top", "--by", "service", "-o", "json", "-n", "1")),
		&got); err != nil || len(got.Rows) != 2 {
		t.Errorf("%+v %v", got, err)
	}
	s.err = nil
	c.must("flows", "list", "--by", "address", "--sort", "flows", "--limit", "3", "--protocol", "udp", "--port-group",
		"web")
	f := api.FlowFilter{Protocol: "udp", PortGroup: "web"}
	rates := api.FlowSumQuery{By: api.ByService, Of: api.SumsOfRates, Sort: "bits", Limit: 200, Interval: time.Second}
	want := []any{rates, rates, api.FlowSumQuery{FlowFilter: f, By: api.ByAddress, Of: api.SumsOfFlows, Sort: "flows",
		Limit: 3}}
	if d := cmp.Diff(want, s.asked); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"list --by size", "list --by vlan --sort last", "list --by vlan --limit 1001",
		"top --by vlan --sort bytes", "top --by x", "watch --by x", "watch --by vlan --interval 1ms",
		"watch --by vlan --sort bits", "watch --interval 5s", "watch --limit 3", "list --by vlan -o xml"} {
		if _, errs, status := c.run(append([]string{"flows"}, strings.Fields(bad)...)...); status != cli.ExitUsage ||
			errs == "" {
			t.Errorf("%s: status %d, %q", bad, status, errs)
		}
	}
	text = c.must("__complete", "flows", "list", "--by", "")
	for _, by := range api.FlowSumKeys() {
		if !strings.Contains(text, by+"\n") {
			t.Errorf("%s is not completed: %s", by, text)
		}
	}
}

func TestFlowsWatchSumsUpEveryInterval(t *testing.T) {
	t.Parallel() // it waits
	s := &standIn{flows: flowAnswers{sums: []api.FlowSums{someSums(api.ByProtocol), someSums(api.ByProtocol)}}}
	s.flows.sums[1].Missed = 3
	out, errs := s.watch(t, "--by", "protocol", "--interval", "5m", "--address", "192.0.2.0/24")
	if strings.Count(out, "13 flows reported in 5m0s") != 2 || strings.Count(out, "PROTOCOL") != 2 ||
		!strings.Contains(out, "3 records came faster") || !strings.Contains(errs, "the agent has ended") {
		t.Errorf("%s%s", out, errs)
	}
	want := api.FlowSumQuery{FlowFilter: api.FlowFilter{Address: "192.0.2.0/24"}, By: api.ByProtocol,
		Of: api.SumsOfRecords, Sort: "bytes", Limit: 20, Interval: 5 * time.Minute}
	if d := cmp.Diff([]any{want}, s.asked); d != "" {
		t.Error(d)
	}
	out, _ = s.watch(t, "--by", "protocol", "-o", "json")
	d, n := json.NewDecoder(strings.NewReader(out)), 0
	for ; d.More(); n++ {
		var got api.FlowSums
		if err := d.Decode(&got); err != nil || got.Rest.Groups != 7 {
			t.Errorf("%+v %v", got, err)
		}
	}
	if n != 2 {
		t.Errorf("%d sums in %s", n, out)
	}
}
