package metering

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

func query() api.FlowQuery { return api.FlowQuery{Sort: "bytes", Limit: 100} }

func TestFlowsAreFilteredSortedAndCut(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1", "vm2", "u1")
	for n := 1; n <= 20; n++ {
		g.src.pass(key(uint16(1+n%3), n), uint64(n))
	}
	g.src.pass(flow.Key{Point: 1, EtherType: 0x0806, DstMAC: plan.MAC{255, 255, 255, 255, 255, 255}}, 100)
	g.src.pass(flow.Key{Point: 2, EtherType: flow.IPv6, Protocol: 58, Src: [16]byte{0x20, 1, 0xd, 0xb8},
		DstPort: 128 << 8}, 200)
	g.src.pass(flow.Key{Point: 2, EtherType: 39}, 1)
	g.await("23 flows", func() bool { l, _ := g.Flows(query()); return l.Total == 23 })
	q := query()
	q.Limit, q.Sort = 3, "packets"
	l, err := g.Flows(q)
	if err != nil || l.Total != 23 || l.Kept != 23 || len(l.Flows) != 3 ||
		*l.Flows[0].ICMP != (api.ICMPMessage{Type: 128}) ||
		l.Flows[1].Protocol != "arp" || l.Flows[2].Packets != 20 {
		t.Errorf("%+v %v", l, err)
	}
	last := l.Flows[2]
	if last.Port != "u1" || !last.Uplink || last.Direction != "ingress" || last.VLAN.String() != "100" ||
		last.SourcePort != 1020 || last.In != "vm1" || last.Out != "u1" {
		t.Errorf("%+v", last)
	}
	for f, want := range map[api.FlowFilter]int{
		{Port: "vm1"}: 7, {Port: "u1"}: 7, {Uplink: "u1"}: 7, {PortGroup: "db"}: 9, {Switch: "lab"}: 23,
		{Protocol: "llc"}: 1, {Protocol: "0x0027"}: 1, {Direction: "egress"}: 10,
		{Protocol: "tcp"}: 20, {Protocol: "6"}: 20, {Protocol: "UDP"}: 0, {Protocol: "arp"}: 1, {Protocol: "0x0806"}: 1,
		{Protocol: "icmp6"}:    1,
		{Address: "192.0.2.7"}: 1, {Address: "192.0.2.0/29"}: 7, {Address: "198.51.100.1"}: 20,
		{Address: "2001:db8::/32"}: 1, {L4Port: 443}: 20, {L4Port: 1003}: 1, {L4Port: 128 << 8}: 0,
		{Port: "vm1", Protocol: "tcp", L4Port: 1003}: 1,
	} {
		q := query()
		q.FlowFilter = f
		if l, err := g.Flows(q); err != nil || l.Total != want || len(l.Flows) != want {
			t.Errorf("%+v: %d flows, %v; want %d", f, l.Total, err, want)
		}
	}
}

func TestWhatIsAskedWronglyIsAnError(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	for _, q := range []api.FlowQuery{{Limit: 1}, {Sort: "size", Limit: 1}, {Sort: "last"},
		{Sort: "last", Limit: api.MaxFlowList + 1}} {
		if _, err := g.Flows(q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
	for _, f := range []api.FlowFilter{{Address: "x"}, {Address: "192.0.2.0/33"}, {Protocol: "tpc"}, {Protocol: "256"},
		{L4Port: -1}, {L4Port: 65536}, {Direction: "in"}} {
		var e *api.Error
		if err := g.Records(t.Context(), f, func(api.FlowRecords) error { return nil }); !errors.As(err, &e) ||
			e.Kind != api.Invalid {
			t.Errorf("%+v: %v", f, err)
		}
	}
	top := api.FlowTopQuery{Sort: "bits", Limit: 1, Interval: every}
	for _, change := range []func(*api.FlowTopQuery){func(q *api.FlowTopQuery) { q.Sort = "last" },
		func(q *api.FlowTopQuery) { q.Limit = 0 }, func(q *api.FlowTopQuery) { q.Interval = 0 },
		func(q *api.FlowTopQuery) { q.Protocol = "x" }} {
		q := top
		change(&q)
		if err := g.Top(t.Context(), q, func(api.FlowTop) error { return nil }); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
}

func TestTopTellsTheRatesOfAnInterval(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	g.src.pass(key(1, 1), 1_000_000)
	g.src.pass(key(1, 2), 1)
	g.await("flows", func() bool { l, _ := g.Flows(query()); return l.Total == 2 })
	enough := errors.New("enough")
	err := g.Top(t.Context(), api.FlowTopQuery{Sort: "packets", Limit: 5, Interval: 5 * every},
		func(f api.FlowTop) error {
			g.src.pass(key(1, 2), 1)
			if f.Active == 0 {
				return nil
			}
			if f.Matching != 2 || f.Active != 1 || len(f.Flows) != 1 || f.Flows[0].SourcePort != 1002 ||
				f.Flows[0].Rates.Packets <= 0 || f.Sum.Packets != f.Flows[0].Rates.Packets || !f.Metered {
				t.Errorf("%+v", f)
			}
			return enough
		})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

func TestRecordsAreToldAsTheyAreMade(t *testing.T) {
	g := newRig(t)
	g.settle(short, "vm1")
	ctx, cancel := context.WithCancel(t.Context())
	var got []api.FlowRecord
	err := g.Records(ctx, api.FlowFilter{L4Port: 1001}, func(r api.FlowRecords) error {
		if r.Records == nil {
			t.Error("no list")
		}
		if len(r.Records) == 0 { // followed from now on
			g.src.pass(key(1, 1), 5)
			g.src.pass(key(1, 2), 6)
		}
		if got = append(got, r.Records...); len(got) > 0 {
			cancel()
		}
		return nil
	})
	if err != nil || len(got) != 1 || got[0].Reason != "idle" || got[0].Packets != 5 || got[0].Total.Packets != 5 ||
		got[0].Port != "vm1" || got[0].Start.IsZero() {
		t.Errorf("%+v %v", got, err)
	}
}

func TestStatusTellsTablesCollectorsAndLosses(t *testing.T) {
	g := newRig(t)
	g.src.losses = []flow.Loss{{Point: 2, Packets: 9, Bytes: 90}, {Point: 3, Packets: 1}}
	g.settle(idle, "vm1", "u1")
	g.src.pass(key(1, 1), 5)
	g.await("a flow", func() bool { l, _ := g.Flows(query()); return l.Total == 1 })
	s, err := g.Status()
	if err != nil || len(s.Switches) != 1 {
		t.Fatalf("%+v %v", s, err)
	}
	lab := s.Switches[0]
	want := api.FlowSwitch{Switch: "lab", Metered: 2, Flows: 1, MaxFlows: 1000, TableSize: lab.TableSize,
		Counted: api.FlowCounts{Packets: 5, Bytes: 500, FrameBytes: 570},
		Collectors: []api.FlowCollector{{Collector: "192.0.2.9:4739", Transport: "udp", Shape: "standard",
			State: "sending", Lost: 3}},
		Losses: []api.FlowLoss{{Port: "u1", Uplink: true, FlowCounts: api.FlowCounts{Packets: 1}},
			{Port: "vm2", FlowCounts: api.FlowCounts{Packets: 9, Bytes: 90}}}}
	if d := cmp.Diff(want, lab); d != "" || lab.TableSize == 0 {
		t.Error(d)
	}
}

func TestTCPFlagsHaveTheirNames(t *testing.T) {
	if got := fmt.Sprint(tcpFlags(0x1ff), tcpFlags(0x12), tcpFlags(0)); got !=
		"[FIN SYN RST PSH ACK URG ECE CWR AE] [SYN ACK] []" {
		t.Error(got)
	}
	for r, want := range map[flow.EndReason]string{1: "idle", 2: "active", 3: "end", 4: "forced", 5: "no-resources",
		9: "9"} {
		if got := reasonName(r); got != want {
			t.Errorf("%d: %s", r, got)
		}
	}
	vlans := flow.Point{}
	overlay := flow.Point{Overlay: &flow.Overlay{1: {VNI: 5000}, 2: {VNI: 5000, VLAN: 10}}}
	for _, c := range []struct {
		at   flow.Point
		vlan uint16
		want string
	}{{vlans, flow.AD | 7, "ad:7"}, {vlans, flow.AD, "untagged"}, {vlans, 1, "1"}, {overlay, 1, "vni:5000"},
		{overlay, 2, "vni:5000/10"}} {
		if got := segmentAt(c.at, c.vlan).shown().String(); got != c.want {
			t.Errorf("VLAN %d is shown as %s, want %s", c.vlan, got, c.want)
		}
	}
}
