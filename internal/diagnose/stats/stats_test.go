package stats

import (
	"math"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heddle/internal/api"
)

// port returns a port that received n frames of 100 bytes, got twice as many delivered, and dropped a tenth.
func port(sw, group, name string, n uint64, at int64) api.Stats {
	return api.Stats{Switch: sw, PortGroup: group, Name: name, Uplink: group == "", ReadAt: at, Counters: []api.Counter{
		{Name: "packetsInUnicast", Value: n - 1}, {Name: "packetsInBroadcast", Value: 1},
		{Name: "bytesInUnicast", Value: 100*n - 60},
		{Name: "bytesInBroadcast", Value: 60}, {Name: "packetsOutMulticast", Value: 2 * n},
		{Name: "bytesOutMulticast", Value: 200 * n},
		{Name: "packetsInDropped", Value: n / 10}, {Name: "packetsInException", Value: 1},
		{Name: "packetsOutDropped", Value: 3}, {Name: "packetsOutException", Value: 4},
		{Name: "bytesInFromPnic", Value: 1 << 40}, {Name: "bytesOutToPnic", Value: 1 << 41},
	}, Device: &api.DeviceLosses{RxDropped: 1, TxDropped: 2, RxErrors: 3, TxErrors: 4, RxMissed: 5}}
}

func TestS80_CountsAreThoseOfTheClassesAndOfEveryReason(t *testing.T) {
	s := port("s", "web", "p", 100, 1)
	want := Counts{PacketsIn: 100, BytesIn: 10000, PacketsOut: 200, BytesOut: 20000, InDropped: 11, OutDropped: 7,
		DeviceLost: 14, BroadcastIn: 1}
	if d := cmp.Diff(want, Of(&s)); d != "" {
		t.Error(d)
	}
}

// Copies that the checks refuse in normal operation are counted apart from drops, and at an uplink also frames without
// a receiver on this host.
func TestWhatIsLeftOutByDesignIsNoDrop(t *testing.T) {
	reasons := func(of map[string]uint64) (list []api.ReasonNo) {
		for _, name := range []string{"forged-transmit", "unknown-unicast", "no-receiver", "reverse-path",
			"reflected"} {
			list = append(list, api.ReasonNo{Reason: name, Value: of[name]})
		}
		return list
	}
	s := api.Stats{Counters: []api.Counter{{Name: "packetsInDropped", Value: 111},
		{Name: "packetsOutDropped", Value: 33}},
		Drops:   reasons(map[string]uint64{"forged-transmit": 1, "unknown-unicast": 10, "no-receiver": 100}),
		Refused: reasons(map[string]uint64{"reverse-path": 10, "reflected": 20})}
	if got, want := Of(&s), (Counts{InDropped: 111, OutDropped: 3, Filtered: 30, UnknownIn: 10}); got != want {
		t.Errorf("a port: %+v, want %+v", got, want)
	}
	s.Extra = []api.Counter{{Name: "unknownFlooded", Value: 1000}, {Name: "unknownNotFlooded", Value: 10000}}
	if got := Of(&s).UnknownIn; got != 11010 {
		t.Errorf("%d frames of unknown unicast", got)
	}
	s.Extra, s.Uplink = nil, true
	if got, want := Of(&s), (Counts{InDropped: 1, OutDropped: 3, Filtered: 140}); got != want {
		t.Errorf("an uplink: %+v, want %+v", got, want)
	}
}

func TestRatesAreOfTheTimeBetweenTheReadingsOfEachPort(t *testing.T) {
	before := Read([]api.Stats{port("s", "web", "a", 100, 5e9), port("s", "web", "b", 100, 5e9),
		port("s", "web", "back", 100, 5e9)})
	lines := Lines(before, []api.Stats{port("s", "web", "a", 300, 7e9), port("s", "web", "b", 200, 6e9),
		port("s", "web", "new", 5, 6e9), port("s", "web", "back", 99, 6e9)})
	for i, want := range []*Rates{{PacketsIn: 100, BytesIn: 10000, PacketsOut: 200, BytesOut: 20000, InDropped: 10},
		{PacketsIn: 100, BytesIn: 10000, PacketsOut: 200, BytesOut: 20000, InDropped: 10}, nil, nil} {
		if d := cmp.Diff(want, lines[i].Rates); d != "" {
			t.Errorf("%s: %s", lines[i].Port, d)
		}
	}
}

func TestSumsAreByPortGroupAndSwitch(t *testing.T) {
	all := []api.Stats{port("s", "", "u1", 1000, 1), port("s", "web", "a", 100, 1), port("s", "db", "c", 10, 1),
		port("s", "web", "b", 200, 1), port("z", "web", "a", 1, 1)}
	names := func(by By) (out []string) {
		for _, l := range Sum(Lines(nil, all), by) {
			out = append(out, l.Switch+"/"+l.PortGroup)
		}
		return out
	}
	if d := cmp.Diff([]string{"s/(uplinks)", "s/web", "s/db", "z/web"}, names(PortGroup)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"s/", "z/"}, names(Switch)); d != "" {
		t.Error(d)
	}
	web := Sum(Lines(nil, all), PortGroup)[1]
	if web.Ports != 2 || web.Counts.PacketsIn != 300 || web.Counts.DeviceLost != 28 || web.Rates != nil {
		t.Errorf("%+v", web)
	}
}

func TestSumsOfSumsAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, earlier []api.Stats
		for i := range rapid.IntRange(1, 20).Draw(t, "ports") {
			group := rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "group")
			n := rapid.Uint64Range(1, 1<<30).Draw(t, "frames")
			all = append(all, port(rapid.SampledFrom([]string{"s", "z"}).Draw(t, "switch"), group, string(rune('a'+i)),
				2*n, 2e9))
			before := port(all[i].Switch, group, all[i].Name, n, 1e9)
			earlier = append(earlier, before)
		}
		lines := Lines(Read(earlier), all)
		direct, byGroup := Sum(lines, Switch), Sum(Sum(lines, PortGroup), Switch)
		if len(direct) != len(byGroup) {
			t.Fatalf("%d and %d switches", len(direct), len(byGroup))
		}
		for i := range direct {
			if direct[i].Counts != byGroup[i].Counts || direct[i].Ports != byGroup[i].Ports {
				t.Fatalf("%+v, %+v", direct[i], byGroup[i])
			}
			if math.Abs(direct[i].Rates.PacketsIn-byGroup[i].Rates.PacketsIn) > 1 {
				t.Fatalf("rates %+v, %+v", direct[i].Rates, byGroup[i].Rates)
			}
		}
	})
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7.5: "7.5", 0.04: "0.0", 120.3: "120", 999.4: "999", 999.5: "1.0k",
		1234: "1.2k", 99960: "100k", 34.8e9: "34.8G", 2e6: "2M", -1: "-"} {
		if got := Short(n); got != want {
			t.Errorf("Short(%v) = %q, want %q", n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Float64Range(0, 1e20).Draw(t, "n")
		if s := Short(n); utf8.RuneCountInString(s) > 5 {
			t.Fatalf("Short(%v) = %q", n, s)
		}
	})
}
