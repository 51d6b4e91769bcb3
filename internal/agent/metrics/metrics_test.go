package metrics

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// hostOf is a Source that returns what the test stored in it.
type hostOf struct {
	ports    []Port
	switches []string
	flows    api.FlowStatus
	err      error

	neighbours []Neighbours
}

func (h *hostOf) NetworkHealth(context.Context) (*api.HostHealth, error) {
	return &api.HostHealth{Paths: 7, Passing: 4, Waiting: 1, Tunnels: 2, TunnelsPassing: 2, Sent: 50, Answered: 40,
			Forged: 3,
			Findings: []api.NetworkFinding{{Code: "vlan-missing"}, {Code: "vlan-missing"}, {Code: "lossy",
				Note: true}}},
		nil
}

// What the health check has found is counted by code, and paths by what is known of them.
func TestS109_MetricsOfTheHealthCheck(t *testing.T) {
	h, _ := (&hostOf{}).NetworkHealth(t.Context())
	s := newSeries(0)
	s.network(h)
	got := map[string]float64{}
	for _, f := range s.of {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{networkFaults + " vlan-missing": 2, networkFaults + " lossy": 1,
		networkFaults + " mtu": 0, networkPaths + " passing": 4, networkPaths + " unknown": 1, networkPaths +
			" failing": 2,
		networkTunnels + " failing": 0, probesSent: 50, probesAnswered: 40, probesForged: 3} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), not %v", name, v, ok, want)
		}
	}
}

func (h *hostOf) FlowStatus(context.Context) (*api.FlowStatus, error) { return &h.flows, nil }

// metered returns a switch with flows and collectors.
func metered() api.FlowStatus {
	return api.FlowStatus{Switches: []api.FlowSwitch{{Switch: "lab", Metered: 2, Flows: 7, MaxFlows: 1000, Records: 50,
		Counted:  api.FlowCounts{Packets: 900, Bytes: 90},
		Overflow: api.FlowCounts{Packets: 5},
		Losses: []api.FlowLoss{{Port: "vm1/eth0", FlowCounts: api.FlowCounts{Packets: 66}},
			{Port: "uplink1", Uplink: true, FlowCounts: api.FlowCounts{Packets: 67}}},
		Collectors: []api.FlowCollector{{Collector: "flows.example.net:4739", State: "sending", Messages: 3,
			Records: 40, Lost: 12, LostPackets: 13,
			LostSince: time.Unix(1_700_000_000, 0), LastLost: time.UnixMilli(1_700_000_100_500)},
			{Collector: "192.0.2.9:2055", State: "away"}}}}}
}

func (h *hostOf) SampleNeighbours(context.Context) ([]Neighbours, error) { return h.neighbours, nil }

func (h *hostOf) Sample(context.Context) ([]Port, []string, error) {
	return h.ports, h.switches, h.err
}

// full returns a port for which every metric has a value.
func full(name, group string, uplink bool) Port {
	p := Port{ID: plan.PortID{Switch: "lab", Name: name}, PortGroup: group, Uplink: uplink, State: api.Up,
		MACLimit: 4096,
		Lost:     hostdev.Losses{RxDropped: 1, TxDropped: 2, RxErrors: 3, TxErrors: 4, RxMissed: 5}}
	p.Counters.PacketsIn, p.Counters.BytesIn = [abi.Classes]uint64{10, 20, 30}, [abi.Classes]uint64{1000, 2000, 3000}
	p.Counters.PacketsOut, p.Counters.BytesOut = [abi.Classes]uint64{1, 2, 3}, [abi.Classes]uint64{100, 200, 300}
	p.Counters.Delivered, p.Counters.MACsHeld, p.Counters.MACMoves, p.Counters.MACNotLearnedAllowed = 50, 7, 8, 9
	p.Counters.UnknownFlooded = 11
	p.Counters.Drops, p.Counters.Refused = map[abi.Reason]uint64{}, map[abi.Reason]uint64{}
	for r := range abi.Reasons() {
		p.Counters.Drops[r], p.Counters.Refused[r] = uint64(r), uint64(r)
	}
	return p
}

func registry(t testing.TB, h *hostOf) (*Host, *Agent) {
	t.Helper()
	a := NewAgent()
	r, err := NewHost(h, a, "default", "1.2.3", 131072, time.Unix(1000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return r, a
}

func TestEveryMetricIsAsTheReferenceSays(t *testing.T) {
	r, a := registry(t, &hostOf{ports: []Port{full("vm1/eth0", "web", false), full("uplink1", "", true)},
		switches: []string{"lab"}, flows: metered(), neighbours: []Neighbours{{Contested: 2,
			Counts: api.NeighbourCounts{Switch: "lab", Answered: 1, Here: 2, HeldBack: 3, Spoofed: 4, Unbound: 5,
				Contested: 6}}}})
	a.Applied(3 * time.Millisecond)
	a.Failed()
	a.FailedOver("lab")
	got, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[Type]dto.MetricType{Counter: dto.MetricType_COUNTER, Gauge: dto.MetricType_GAUGE,
		Histogram: dto.MetricType_HISTOGRAM}
	want := map[string]Family{}
	for _, f := range Families() {
		want[f.Name] = f
	}
	for _, f := range got {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		w, known := want[f.GetName()]
		delete(want, f.GetName())
		if !known || f.GetHelp() != w.Help || f.GetType() != kinds[w.Type] {
			t.Errorf("%s: %v %q, documented %+v", f.GetName(), f.GetType(), f.GetHelp(), w)
			continue
		}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName())
			}
			if !slices.IsSorted(labels) {
				t.Errorf("%s: labels %v are not in order", f.GetName(), labels)
			}
			if documented := slices.Sorted(slices.Values(w.Labels)); !slices.Equal(documented, labels) {
				t.Errorf("%s has labels %v, documented are %v", f.GetName(), labels, documented)
			}
		}
	}
	for name := range want {
		t.Errorf("%s is documented and was not there", name)
	}
}

func TestTheTextIsWhatPrometheusWants(t *testing.T) {
	r, a := registry(t, &hostOf{ports: []Port{full("vm1/eth0", "web", false), full("uplink1", "", true)},
		switches: []string{"lab"}, flows: metered()})
	a.FailedOver("lab")
	problems, err := promlint.NewWithMetricFamilies(gather(t, r)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	text, err := Text(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n" + `heddle_port_received_frames_total{class="broadcast",port="vm1/eth0",port_group="web",switch="lab"} 30` +
			"\n",
		`heddle_port_received_bytes_total{port="vm1/eth0",port_group="web",switch="lab"} 6000` + "\n",
		`heddle_uplink_sent_frames_total{class="unicast",switch="lab",uplink="uplink1"} 1` + "\n",
		`heddle_port_dropped_frames_total{port="vm1/eth0",port_group="web",reason="forged-transmit",switch="lab"} 6` +
			"\n",
		`heddle_port_device_lost_frames_total{kind="tx-dropped",port="vm1/eth0",port_group="web",switch="lab"} 2` +
			"\n",
		`heddle_uplink_up{state="up",switch="lab",uplink="uplink1"} 1` + "\n",
		`heddle_port_mac_limit{port="vm1/eth0",port_group="web",switch="lab"} 4096` + "\n",
		`heddle_failovers_total{switch="lab"} 1` + "\n",
		`heddle_agent_info{agent="default",version="1.2.3"} 1` + "\n",
		`heddle_flow_table_entries{switch="lab"} 7` + "\n",
		`heddle_flow_not_recorded_packets_total{point="vm1/eth0",switch="lab"} 66` + "\n",
		`heddle_flow_collector_up{collector="flows.example.net:4739",state="sending",switch="lab"} 1` + "\n",
		`heddle_flow_collector_up{collector="192.0.2.9:2055",state="away",switch="lab"} 0` + "\n",
		`heddle_flow_lost_records_total{collector="flows.example.net:4739",switch="lab"} 12` + "\n",
		`heddle_flow_lost_since_timestamp_seconds{collector="flows.example.net:4739",switch="lab"} 1.7e+09` + "\n",
		`heddle_flow_last_lost_timestamp_seconds{collector="flows.example.net:4739",switch="lab"} 1.7000001005e+09` +
			"\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	testkit.Tool(t, "promtool")
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func gather(t *testing.T, r prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	got, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNoSeriesIsMadeByWhatGuestsDo(t *testing.T) {
	quiet := Port{ID: plan.PortID{Switch: "lab", Name: "vm1"}, PortGroup: "web", State: api.Pending}
	h := &hostOf{ports: []Port{quiet}, switches: []string{"lab", "gone"}}
	r, a := registry(t, h)
	a.FailedOver("gone")
	count := func() (n int) {
		for _, f := range gather(t, r) {
			if strings.HasPrefix(f.GetName(), "heddle_port_") || strings.HasPrefix(f.GetName(), "heddle_failovers") {
				n += len(f.Metric)
			}
		}
		return n
	}
	before := count()
	h.switches = h.switches[:1]
	if now := count(); now != before-1 {
		t.Errorf("%d series, and %d when a switch was gone", before, now)
	}
	worst := full("vm1", "web", false)
	h.ports[0] = worst
	if most := count(); most > 20+2*int(abi.ReasonCount)+5 {
		t.Errorf("a port has %d series", most)
	}
	h.ports, h.switches = nil, nil
	if left := count(); left != 0 {
		t.Errorf("%d series are left of ports and switches that are gone", left)
	}
}

func TestNamesThatAreNoTextSpoilNothing(t *testing.T) {
	r, _ := registry(t, &hostOf{ports: []Port{full("a\"\n\\b\xff", "w\xfeb", false), full("vm2", "web", false)}})
	text, err := Text(r)
	if err != nil || !strings.Contains(text, `port="vm2"`) || !strings.Contains(text, `port="a\"\n\\b`) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAScrapeThatFailsSaysWhy(t *testing.T) {
	r, _ := registry(t, &hostOf{err: errors.New("the agent is stopping")})
	if _, err := r.Gather(); err == nil || !strings.Contains(err.Error(), "the agent is stopping") {
		t.Errorf("%v", err)
	}
}

func BenchmarkScrapeOfAThousandPorts(b *testing.B) {
	h := &hostOf{switches: []string{"lab"}}
	for i := range 1000 {
		p := full(fmt.Sprintf("vm%d/eth0", i), "web", false)
		p.Counters.Drops, p.Counters.Refused = map[abi.Reason]uint64{1: 1, 6: 2}, map[abi.Reason]uint64{13: 1}
		h.ports = append(h.ports, p)
	}
	r, _ := registry(b, h)
	for b.Loop() {
		if _, err := Text(r); err != nil {
			b.Fatal(err)
		}
	}
}
