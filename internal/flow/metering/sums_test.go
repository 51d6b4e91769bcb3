package metering

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// sums are rows by name: packets, of them back, and flows.
type sumsByName map[string][3]uint64

func byName(s api.FlowSums) sumsByName {
	all := sumsByName{}
	for _, r := range append(s.Rows, s.Rest, s.Total) {
		if r.Packets > 0 {
			all[r.Name] = [3]uint64{r.Packets, r.Back.Packets, uint64(r.Flows)}
		}
	}
	return all
}

// talk makes two conversations pass between vm1, vm2 and the uplink, each frame seen where it comes in and where it
// goes out: 30 packets to and 20 from vm2's port 443, 10 to port 53 of a station beyond the uplink and 40 from there,
// and 5 to all, in VLAN 200.
func (g *rig) talk() {
	one := flow.Key{EtherType: flow.IPv4, Protocol: 6, Src: [16]byte{192, 0, 2, 1}, Dst: [16]byte{192, 0, 2, 2},
		SrcPort: 40000, DstPort: 443, VLAN: 100,
		SrcMAC: plan.MAC{2, 0, 0, 0, 0, 1}, DstMAC: plan.MAC{2, 0, 0, 0, 0, 2}}
	two := one
	two.Protocol, two.Dst, two.DstPort, two.DstMAC = 17, [16]byte{198, 51, 100, 1}, 53, plan.MAC{2, 0, 0, 0, 0, 3}
	all := flow.Key{EtherType: 0x0806, SrcMAC: plan.MAC{2, 0, 0, 0, 0, 1}, DstMAC: plan.MAC{0xff, 0xff, 0xff, 0xff,
		0xff, 0xff}, VLAN: 200}
	g.both(one, 1, 2, 30)
	g.both(reverse(one), 2, 1, 20)
	g.both(two, 1, 3, 10)
	g.both(reverse(two), 3, 1, 40)
	g.src.mu.Lock()
	defer g.src.mu.Unlock()
	for point, direction := range map[uint16]flow.Direction{1: flow.Ingress, 2: flow.Egress, 3: flow.Egress} {
		k := all
		k.Point, k.Direction = point, direction
		g.src.count(k, 5)
		g.src.pending[k].In, g.src.pending[k].Out = 1, 0
	}
}

// both makes packets pass from one port to another, seen at both.
func (g *rig) both(k flow.Key, from, to uint16, packets uint64) {
	g.src.mu.Lock()
	defer g.src.mu.Unlock()
	for point, direction := range map[uint16]flow.Direction{from: flow.Ingress, to: flow.Egress} {
		k.Point, k.Direction = point, direction
		g.src.count(k, packets)
		g.src.pending[k].In, g.src.pending[k].Out = from, to
	}
}

func sumQuery(by string) api.FlowSumQuery {
	return api.FlowSumQuery{By: by, Of: api.SumsOfFlows, Sort: "packets", Limit: 100}
}

// sumsOf are the sums of the present flows.
func (g *rig) sumsOf(q api.FlowSumQuery) (out api.FlowSums) {
	g.t.Helper()
	if err := g.Sums(g.t.Context(), q, func(s api.FlowSums) error { out = s; return nil }); err != nil {
		g.t.Fatal(err)
	}
	return out
}

// Each packet counts once, although it was metered where it came in and where it went out, and each conversation is one
// row.
func TestSumsHaveEachPacketOnce(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1", "vm2", "u1")
	g.talk()
	g.await("flows", func() bool { l, _ := g.Flows(query()); return l.Total == 11 })
	total := [3]uint64{105, 0, 5}
	for by, want := range map[string]sumsByName{
		api.ByAddress: {"192.0.2.1": {100, 60, 4}, "192.0.2.2": {50, 30, 2}, "198.51.100.1": {50, 10, 2},
			"02:00:00:00:00:01": {5, 0, 1}, "ff:ff:ff:ff:ff:ff": {5, 5, 1}},
		api.ByPortGroup: {"web": {105, 60, 5}, "db": {50, 30, 2}, "uplink u1": {50, 10, 2}},
		api.ByVLAN:      {"100": {100, 0, 4}, "200": {5, 0, 1}},
		api.ByProtocol:  {"tcp": {50, 0, 2}, "udp": {50, 0, 2}, "arp": {5, 0, 1}},
		api.ByService:   {"tcp/443": {50, 0, 2}, "udp/53": {50, 0, 2}, "arp": {5, 0, 1}},
		api.ByConversation: {"192.0.2.1:40000 – 192.0.2.2:443": {50, 20, 2}, "192.0.2.1:40000 – 198.51.100.1:53": {50,
			40, 2}, "02:00:00:00:00:01 – ff:ff:ff:ff:ff:ff": {5, 0, 1}},
	} {
		want["total"] = total
		if got := byName(g.sumsOf(sumQuery(by))); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("by %s: %v, want %v", by, got, want)
		}
	}
	q := sumQuery(api.ByAddress)
	q.Port = "vm2" // packets to vm2 were also metered where they came in, which this filter does not select
	if got, want := byName(g.sumsOf(q)), (sumsByName{"192.0.2.1": {50, 20, 2}, "192.0.2.2": {50, 30, 2},
		"02:00:00:00:00:01": {5, 0, 1}, "ff:ff:ff:ff:ff:ff": {5, 5, 1},
		"total": {55, 0, 3}}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("at vm2: %v, want %v", got, want)
	}
	q = sumQuery(api.ByConversation)
	q.Limit = 1
	s := g.sumsOf(q)
	if got, want := byName(s), (sumsByName{"192.0.2.1:40000 – 192.0.2.2:443": {50, 20, 2}, "others": {55, 40, 3},
		"total": total}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the first: %v, want %v", got, want)
	}
	row := s.Rows[0]
	if s.Rest.Groups != 2 || row.Share < 0.47 || row.Share > 0.48 || row.Protocol != "tcp" ||
		row.VLAN.String() != "100" || row.DestinationPort != 443 || row.Switch != "lab" || s.Crowded {
		t.Errorf("%+v", s)
	}
}

// With more groups than are kept apart, what is not in the rows is in the rest, to the packet.
func TestSumsCostBoundedMemoryAndLoseNothing(t *testing.T) {
	g := newRig(t)
	q := sumQuery(api.ByAddress)
	s, err := g.newSums(&q)
	if err != nil {
		t.Fatal(err)
	}
	only, err := newMatcher(api.FlowFilter{})
	if err != nil {
		t.Fatal(err)
	}
	s.most = 1000
	s.begin(g.once(only, g.src.Points()))
	for i := range 10_000 {
		f := meter.Flow{Switch: "lab", Key: key(1, 1), Total: flow.Counts{Packets: 1, Bytes: 100, FrameBytes: 114}}
		f.Key.Direction, f.Key.Src = flow.Ingress, [16]byte{10, 0, byte(i >> 8), byte(i)}
		if s.add(&f); len(s.groups) > s.most {
			t.Fatalf("%d groups", len(s.groups))
		}
	}
	out := s.end(10)
	sum := out.Rest.Packets
	for _, r := range out.Rows {
		sum += r.Packets
	}
	if first := out.Rows[0]; !out.Crowded || len(out.Rows) != 10 || sum != 20_000 || out.Total.Packets != 10_000 ||
		first.Name != "198.51.100.1" || first.Packets != 10_000 || first.Share != 1 {
		t.Errorf("%d packets in rows and rest; %+v", sum, out)
	}
}

// Rates are those of the interval, again and again.
func TestSumsOfRates(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1", "vm2", "u1")
	g.talk()
	g.await("flows", func() bool { l, _ := g.Flows(query()); return l.Total == 11 })
	kept := g.src.points
	g.src.drain = func() {
		for point, direction := range map[uint16]flow.Direction{1: flow.Ingress, 2: flow.Egress} {
			k := flow.Key{Point: point, Direction: direction, EtherType: flow.IPv4, Protocol: 6,
				Src: [16]byte{192, 0, 2, 1}, Dst: [16]byte{192, 0, 2, 2}, SrcPort: 40000, DstPort: 443,
				VLAN: 100, SrcMAC: plan.MAC{2, 0, 0, 0, 0, 1}, DstMAC: plan.MAC{2, 0, 0, 0, 0, 2}}
			g.src.count(k, 3)
			g.src.pending[k].In, g.src.pending[k].Out = 1, 2
		}
	}
	enough, n := errors.New("enough"), 0
	err := g.Sums(t.Context(), api.FlowSumQuery{By: api.ByConversation, Of: api.SumsOfRates, Sort: "bits", Limit: 5,
		Interval: every}, func(s api.FlowSums) error {
		if len(s.Rows) == 0 || len(s.Rows) > 1 { // before the first interval with these packets alone
			return nil
		}
		r := s.Rows[0]
		if r.Name != "192.0.2.1:40000 – 192.0.2.2:443" || r.Rates.Packets <= 0 || r.Rates != s.Total.Rates ||
			r.Share != 1 || r.Packets != 0 || r.Flows != 1 || !s.Metered {
			t.Errorf("%+v of %v", s, kept)
		}
		if n++; n == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// The records of all intervals together contain what was counted.
func TestSumsOfRecords(t *testing.T) {
	g := newRig(t)
	g.settle(30*time.Millisecond, "vm1", "vm2", "u1")
	g.await("it is metered", func() bool { return g.src.drained() > 0 })
	enough, packets, back, begun := errors.New("enough"), uint64(0), uint64(0), false
	err := g.Sums(t.Context(), api.FlowSumQuery{By: api.ByConversation, Of: api.SumsOfRecords, Sort: "flows", Limit: 5,
		Interval: 2 * every}, func(s api.FlowSums) error {
		if !begun {
			begun = true
			g.talk()
		}
		var rows uint64
		for _, r := range s.Rows {
			rows += r.Packets
			back += r.Back.Packets
		}
		if rows != s.Total.Packets || s.Missed > 0 {
			t.Errorf("%+v", s)
		}
		if packets += rows; packets >= 105 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || packets != 105 || back != 60 {
		t.Errorf("%d packets, %d back, %v", packets, back, err)
	}
}

func TestSumsAreRefusedWhereTheyMakeNoSense(t *testing.T) {
	g := newRig(t)
	for want, q := range map[string]api.FlowSumQuery{
		"by \"size\"":   {By: "size", Of: api.SumsOfFlows, Sort: "bytes", Limit: 1},
		"limit 0":       {By: api.ByVLAN, Of: api.SumsOfFlows, Sort: "bytes"},
		"sort \"bits\"": {By: api.ByVLAN, Of: api.SumsOfFlows, Sort: "bits", Limit: 1},
		"interval 0s":   {By: api.ByVLAN, Of: api.SumsOfRecords, Sort: "bytes", Limit: 1},
		"of \"all\"":    {By: api.ByVLAN, Of: "all", Sort: "bytes", Limit: 1, Interval: time.Second},
	} {
		t.Run(want, func(t *testing.T) {
			if err := g.Sums(t.Context(), q, func(api.FlowSums) error { return nil }); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", q, err, want)
			}
		})
	}
}

// Both directions of a conversation have the same server, whatever its ports are.
func TestServerOfAConversation(t *testing.T) {
	names := parseServices(strings.NewReader("# names\nhttp\t80/tcp www # web\nhttp-alt 8080/tcp webcache\nother " +
		"80/tcp\nbad x/tcp\nshort\ndomain 53/udp\n"))
	if names.name("tcp", 80) != "http" || names.name("udp", 80) != "" || len(names) != 3 {
		t.Errorf("%v", names)
	}
	for _, c := range []struct{ a, b, server uint16 }{{40000, 80, 80}, {1000, 8080, 8080}, {1000, 2000, 1000},
		{80, 8080, 80}, {7000, 7000, 7000}} {
		k := flow.Key{EtherType: flow.IPv4, Protocol: 6, Src: [16]byte{192, 0, 2, 9}, Dst: [16]byte{192, 0, 2, 1},
			SrcPort: c.a, DstPort: c.b}
		o := reverse(k)
		at, port, back := names.server(&k)
		other, again, forth := names.server(&o)
		if port != c.server || again != port || at != other || back == forth {
			t.Errorf("%+v: %v %d %v, and the other way %v %d %v", c, at, port, back, other, again, forth)
		}
	}
}
