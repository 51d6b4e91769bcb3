package benchmark_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/fabric"
	"heddle/internal/fabric/benchmark"
)

// members are hosts h0, h1 … with two uplinks each that have VLANs 10 and 20.
func members(hosts int) (list []fabric.Member) {
	for h := range hosts {
		for u := 1; u <= 2; u++ {
			list = append(list, fabric.Member{End: fabric.End{Host: fmt.Sprintf("id%d", h), Switch: "s",
				Uplink: fmt.Sprintf("uplink%d", u)}, Name: fmt.Sprintf("h%d", h), MTU: 1500, VLANs: []uint16{10, 20},
				Plug: fmt.Sprintf("port %d of tor-%d", h, u), Speed: 10_000_000_000})
		}
	}
	return list
}

// Every host sends to every other one by each of its uplinks, and no uplink sends or receives more than was asked for,
// nor more than a tenth of its speed.
func TestS109_ABenchmarkIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		speed uint64 // of the first uplink of h0
		rate  uint64
		most  uint64
	}{
		{"as asked for", 10_000_000_000, 50_000_000, 50_000_000},
		{"a slow uplink", 100_000_000, 50_000_000, 10_000_000},
		{"an unknown speed", 0, 1_000_000_000, 100_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := members(5)
			all[0].Speed = c.speed
			flows, apart := benchmark.Plan(all, c.rate)
			if len(flows) != 5*4*2 || len(apart) > 0 {
				t.Fatalf("%d flows, apart: %v", len(flows), apart)
			}
			out, in, vlans := map[fabric.End]uint64{}, map[fabric.End]uint64{}, map[uint16]int{}
			for i, f := range flows {
				out[f.From.End] += f.Rate
				in[f.To.End] += f.Rate
				vlans[f.VLAN]++
				if f.From.Uplink != f.To.Uplink || f.From.Host == f.To.Host || f.MTU != 1500 ||
					f.Number != uint32(i+1) {
					t.Errorf("%+v", f)
				}
			}
			for _, m := range all {
				most := min(c.rate, 1_000_000_000)
				if m.End == all[0].End {
					most = c.most
				}
				if out[m.End] > most || in[m.End] > most || out[m.End] == 0 {
					t.Errorf("%s sends %d and receives %d", m.What(), out[m.End], in[m.End])
				}
			}
			if vlans[10] == 0 || vlans[20] == 0 {
				t.Errorf("VLANs %v", vlans)
			}
		})
	}
}

// Hosts that have nothing in common are named, each pair once.
func TestPlan_NamesHostsThatHaveNothingInCommon(t *testing.T) {
	all := members(3)
	for i := range all[4:] {
		all[4+i].VLANs = []uint16{30}
	}
	flows, apart := benchmark.Plan(all, benchmark.DefaultRate)
	if len(flows) != 4 || fmt.Sprint(apart) != "[[h0 h2] [h1 h2]]" {
		t.Errorf("%d flows, apart: %v", len(flows), apart)
	}
}

// fine is what comes of flows without a fault.
func fine(flows []benchmark.Flow) (list []benchmark.Result) {
	for _, f := range flows {
		n := f.Rate / 8 / uint64(f.MTU)
		list = append(list, benchmark.Result{Flow: f, Sent: n, Frames: n, Lasted: time.Second, Pings: 20, Answered: 20,
			Replies: 20, P50: time.Millisecond, P99: 2 * time.Millisecond})
	}
	return list
}

// The pairs with faults are named, with what they share that the others do not.
func TestS109_WhatPairsWithFaultsShare(t *testing.T) {
	flows, _ := benchmark.Plan(members(4), 100_000_000)
	slow := func(r *benchmark.Result) { r.Frames /= 4 }
	for _, c := range []struct {
		name string
		is   func(r *benchmark.Result) bool
		harm func(r *benchmark.Result)
		want []string
	}{
		{"nothing", func(*benchmark.Result) bool { return false }, nil, nil},
		{"what arrives at an uplink", func(r *benchmark.Result) bool { return r.To.What() == "h2/uplink1" }, slow,
			[]string{"3 of 24 pairs are slow or lose frames (h0/uplink1 to h2/uplink1, ",
				"); they arrive at h2/uplink1"}},
		{"an uplink both ways", func(r *benchmark.Result) bool {
			return r.To.What() == "h2/uplink1" || r.From.What() == "h2/uplink1"
		}, slow, []string{"6 of 24 pairs are slow", "they use h2/uplink1"}},
		{"a host that does not answer", func(r *benchmark.Result) bool {
			return r.To.Name == "h1" || r.From.Name == "h1"
		},
			func(r *benchmark.Result) { r.Answered, r.Sent, r.Frames = 0, 0, 0 },
			[]string{"12 of 24 pairs get no answer", "they are from or to h1"}},
		{"a physical switch", func(r *benchmark.Result) bool { return r.From.Uplink == "uplink2" && r.VLAN == 10 },
			func(r *benchmark.Result) { r.P50 *= 20 }, []string{"are late", "they are plugged into tor-2"}},
		{"a VLAN", func(r *benchmark.Result) bool { return r.VLAN == 20 },
			func(r *benchmark.Result) { r.Frames -= 400 },
			[]string{"lose frames", "they are in VLAN 20"}},
		{"a pair alone", func(r *benchmark.Result) bool { return r.From.Name == "h0" && r.To.What() == "h1/uplink1" },
			slow,
			[]string{"1 of 24 pairs are slow or lose frames (h0/uplink1 to h1/uplink1)"}},
		{"duplicates from one host", func(r *benchmark.Result) bool { return r.From.Name == "h3" },
			func(r *benchmark.Result) { r.Duplicates = 1 }, []string{"get frames twice", "they come from h3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := fine(flows)
			for i := range list {
				if c.is(&list[i]) {
					c.harm(&list[i])
				}
			}
			lines := benchmark.Judge(list)
			if len(c.want) == 0 != (len(lines) == 0) || len(lines) > 1 {
				t.Fatalf("%q", lines)
			}
			for _, w := range c.want {
				if !strings.Contains(lines[0], w) {
					t.Errorf("%q lacks %q", lines[0], w)
				}
			}
			for i := range list {
				if c.is(&list[i]) != (len(list[i].Faults) > 0) {
					t.Errorf("%s has %v", list[i].Names(), list[i].Faults)
				}
			}
		})
	}
}

// Two faults that have nothing in common are two lines.
func TestS109_TwoFaultsAreTwoLines(t *testing.T) {
	flows, _ := benchmark.Plan(members(6), 100_000_000)
	list := fine(flows)
	for i := range list {
		if e := list[i].To.What(); e == "h1/uplink1" || e == "h4/uplink2" {
			list[i].Frames /= 4
		}
	}
	lines := benchmark.Judge(list)
	if len(lines) != 2 || !slices.ContainsFunc(lines, func(s string) bool {
		return strings.HasSuffix(s, "; they arrive at h1/uplink1")
	}) || !slices.ContainsFunc(lines, func(s string) bool {
		return strings.HasSuffix(s, "; they arrive at h4/uplink2")
	}) {
		t.Errorf("%q", lines)
	}
}

// A rate and a time out of range are refused.
func TestCheck_RefusesWhatIsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  uint64
		lasts time.Duration
		ok    bool
	}{
		{"the defaults", benchmark.DefaultRate, benchmark.DefaultTime, true},
		{"too slow", 99_999, time.Second, false}, {"too fast", 1_000_000_001, time.Second, false},
		{"too short", benchmark.DefaultRate, time.Second - 1, false},
		{"too long", benchmark.DefaultRate, time.Minute + 1, false}, {"negative", benchmark.DefaultRate, -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := benchmark.Check(c.rate, c.lasts); (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}
