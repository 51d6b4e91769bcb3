package flowexport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
	"heddle/internal/spec"
)

func defaults() Options {
	var o Options
	o.Default()
	return o
}

func TestSelections(t *testing.T) {
	o := defaults()
	cells, err := o.cells()
	if err != nil || len(cells) != 9 {
		t.Errorf("%d cells by default, %v", len(cells), err)
	}
	o.Pairs = []int{1, 8}
	if cells, err = o.cells(); err != nil || len(cells) != 12 {
		t.Errorf("%d cells of all pairs, %v", len(cells), err)
	}
	configs, err := o.configurations()
	if err != nil || len(configs) != 6 {
		t.Errorf("%d configurations by default, %v", len(configs), err)
	}
	o.Loads, o.Pairs, o.Configurations = []string{"crr-4", "udp-18"}, []int{3}, []string{"ipfix-bi+5k"}
	if cells, _ = o.cells(); fmt.Sprint(cells) != "[udp-18, 3 pairs crr-4, 3 pairs]" {
		t.Errorf("cells %v", cells)
	}
	if configs, _ = o.configurations(); len(configs) != 2 || configs[0].name() != "baseline+5k" ||
		configs[1].name() != "ipfix-bi+5k" {
		t.Errorf("a configuration comes with its baseline: %v", configs)
	}
	for want, spoil := range map[string]func(*Options){
		"no cell \"fddi\"": func(o *Options) { o.Loads = []string{"fddi"} }, "17 pairs": func(o *Options) {
			o.Pairs = []int{17}
		},
		"no configuration": func(o *Options) { o.Configurations = []string{"off"} }, "resolution": func(o *Options) {
			o.Resolution = -1
		}, "positive": func(o *Options) { o.Rounds = 0 },
		"warm-up": func(o *Options) { o.Warmup = 0 }, "background": func(o *Options) { o.FlowRate = 0 },
	} {
		t.Run(want, func(t *testing.T) {
			bad := defaults()
			spoil(&bad)
			if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want an error with %q, got %v", want, err)
			}
		})
	}
}

func TestQuickEndsWithinAMinute(t *testing.T) {
	o := defaults()
	o.Quick()
	if err := o.Check(); err != nil || o.Limit > 55*time.Second {
		t.Errorf("quick is %+v, %v", o, err)
	}
}

func TestConfigurationsOfTheHostsAreSound(t *testing.T) {
	for ports, overlay := range map[int]bool{9: false, 10: true} {
		if _, err := scenario.Parse("lab.yaml", []byte(scenarioText(make([]adapter, 9), overlay)), nil); err != nil {
			t.Fatal(err)
		}
		for _, s := range sides {
			for _, m := range []metering{off, uni, bi} {
				text := hostConfig(s, m, export{m, 4739}, 8, overlay)
				cfg, err := spec.Parse("host.yaml", []byte(text))
				if err != nil {
					t.Fatalf("%s: %v\n%s", m, err, text)
				}
				sw := cfg.Switches[len(cfg.Switches)-1]
				if got := len(sw.IPFIX.Collectors) > 0; got != (m != off) || len(cfg.Ports) != ports {
					t.Errorf("%s, overlay %v: collectors %+v, %d ports", m, overlay, sw.IPFIX.Collectors,
						len(cfg.Ports))
				}
				if overlay != (sw.Tunnel != nil) || overlay && (sw.Tunnel.Monitoring.IPFIX != nil) != (m == uni) {
					t.Errorf("%s, overlay %v: the tunnel is %+v", m, overlay, sw.Tunnel)
				}
			}
		}
	}
}

func TestEndsThatTakeTurnsShareACPU(t *testing.T) {
	by := map[string]load{}
	for _, l := range loads() {
		by[l.name] = l
	}
	for _, tt := range []struct {
		load           string
		pairs, pair    int
		client, server []int
	}{
		{"udp-18", 1, 0, []int{0}, []int{1}}, {"stream", 1, 0, []int{0}, []int{1}}, {"crr-1", 1, 0, []int{0}, []int{0}},
		{"crr-4", 1, 0, []int{0, 1}, []int{0, 1}}, {"udp-18", 8, 3, []int{1}, []int{1}},
		{"crr-4", 8, 2, []int{0}, []int{0}},
	} {
		t.Run(tt.load, func(t *testing.T) {
			c, s := cell{load: by[tt.load], pairs: tt.pairs}.cpus(tt.pair, []int{0, 1})
			if !slices.Equal(c, tt.client) || !slices.Equal(s, tt.server) {
				t.Errorf("%s ×%d, pair %d: CPUs %v and %v", tt.load, tt.pairs, tt.pair, c, s)
			}
		})
	}
}

func TestCellsSettleWhereTheyAreMetered(t *testing.T) {
	o := defaults()
	for _, l := range loads() {
		for _, cfg := range []configuration{{off, false}, {off, true}, {uni, false}, {uni, true}, {again, true}} {
			warmup, duration := cell{load: l, pairs: 1}.times(o, cfg)
			want := o.Warmup
			switch {
			case l.kind == traffic.KindCRR && cfg.metering != off:
				want = o.Settle
			case cfg.metering != off:
				want = bothDrained // 5,000 flows at 5,000 packets a second have begun before that
			}
			if warmup != want || duration < o.Duration || l.kind == traffic.KindCRR && duration != 2*o.Duration {
				t.Errorf("%s under %s: warm-up %v, want %v, interval %v", l.name, cfg.name(), warmup, want, duration)
			}
		}
	}
}

func TestCollectorCountsTheRecordsOfEverySession(t *testing.T) {
	c := collector{sessions: map[netip.AddrPort]*session{}}
	a, b := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	message := func(sequence uint32) []byte {
		b := make([]byte, ipfixHeader+4)
		binary.BigEndian.PutUint16(b, ipfixVersion)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint32(b[8:], sequence)
		return b
	}
	for _, n := range []uint32{0, 20, 50} {
		c.take(a, message(n))
	}
	if e := c.since(); e != (exported{3, 50, 60}) {
		t.Errorf("one session: %+v", e)
	}
	c.take(b, message(7)) // another one begins while the first goes on
	c.take(a, message(60))
	c.take(b, message(9))
	c.take(a, message(3)) // and the first begins again
	c.take(a, []byte("not a message at all"))
	if e := c.since(); e != (exported{4, 22, 80}) || c.sum().records != 72 {
		t.Errorf("two sessions: %+v of %+v", e, c.sum())
	}
}

func TestCollectorCountsTheRecordsOfTheNewestMessage(t *testing.T) {
	c := collector{sessions: map[netip.AddrPort]*session{}}
	from := netip.MustParseAddrPort("127.0.0.1:1")
	message := func(sequence uint32, sets ...uint16) []byte {
		b := make([]byte, ipfixHeader, 100)
		binary.BigEndian.PutUint16(b, ipfixVersion)
		binary.BigEndian.PutUint32(b[8:], sequence)
		for _, word := range sets {
			b = binary.BigEndian.AppendUint16(b, word)
		}
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		return b
	}
	data := []uint16{256, 4 + 3*6, 0, 0, 0, 0, 0, 0, 0, 0, 0} // three records of six bytes
	c.take(from, message(0, append([]uint16{2, 4 + 4 + 4 + 8, 256, 2, 8, 4, 1 << 15, 2, 0, 6876}, data...)...))
	if got := c.sum().records; got != 3 {
		t.Errorf("%d records in the only message, want 3", got)
	}
	c.take(from, message(3, data...))
	c.take(from, message(10)) // one of four records was lost on the way
	if got := c.sum().records; got != 10 {
		t.Errorf("%d records, want 10", got)
	}
	c.take(from, message(0, 2, 4+4+4, 256, 1, 82, 65535)) // a session that begins again, with a name
	c.take(from, message(0, data...))
	if got := c.sum().records; got != 10 {
		t.Errorf("%d records, but their length is not known before the next message", got)
	}
}

// madeUp is a run of one cell with invented figures: a series in which the baseline has rate 1e6 and metering reaches
// the given share of it. The programs run twice per packet, for 100 ns each, and 20 ns more with metering.
func madeUp(l string, kept ...float64) *run {
	o := defaults()
	o.Loads, o.Pairs, o.Configurations = []string{l}, []int{1}, []string{"ipfix"}
	cells, _ := o.cells()
	configs, _ := o.configurations()
	r := &run{opts: o, rig: &rig{cpus: []int{0, 1}}, cells: cells, configs: configs, samples: map[at][]sample{},
		visits: map[string]visits{}, exported: map[source]exported{}}
	var series []taken
	for i, cfg := range order(configs, 0, len(kept)) {
		s := sample{rate: 1e6, middle: time.Unix(int64(i), 0), took: time.Second, machine: time.Second}
		perPacket, agent := 200*time.Nanosecond, 2*time.Millisecond
		if cfg.metering != off {
			s.rate *= kept[i/2]
			perPacket, agent = 240*time.Nanosecond, 12*time.Millisecond
		}
		for _, h := range sides {
			n := uint64(s.rate)
			s.passed[h], s.watched[h] = frames{n, n}, frames{n / 2, n / 2} // of half a second
			s.runs[h], s.agents[h] = runs{n, time.Duration(n/2) * perPacket}, agent
		}
		series = append(series, taken{cfg, s})
	}
	r.keep(cells[0], series)
	return r
}

func TestCostIsThatOfProgramsAndAgentBeyondTheBaseline(t *testing.T) {
	r := madeUp("udp-18", 1, 1, 1)
	all, program, agent := r.costs(r.cells[0], configuration{uni, false}, tx)
	// 2 runs × 20 ns × 100,000 per second; 10 ms per second and million packets, a tenth of it for 100,000.
	want := [3]float64{0.005, 0.004, 0.001}
	for i, got := range [][]float64{all, program, agent} {
		if len(got) != 3 || math.Abs(got[0]-want[i]) > 1e-9 {
			t.Errorf("cost %d is %v, want %v", i, got, want[i])
		}
	}
}

func TestReportHoldsTheWorstOfACell(t *testing.T) {
	r := madeUp("udp-18", 0.90, 0.94, 0.93)
	r.exported[source{uni, tx}] = exported{1, 1, 1}
	rep := r.report(report.Environment{})
	err := rep.Check()
	if !errors.Is(err, report.ErrBudget) ||
		!strings.Contains(err.Error(), "udp-18, 1 pair: ipfix / baseline, the lowest is 0.930, wanted >= 0.950") ||
		!strings.Contains(err.Error(), "exported records is 1") {
		t.Errorf("Check = %v", err)
	}
	for _, p := range rep.Plots {
		for _, f := range p.Series {
			if _, ok := rep.Rows[1].Field(f.Field); !ok && !strings.Contains(f.Field, "tps") {
				t.Errorf("the picture %q shows a column %q that is not there", p.Title, f.Field)
			}
		}
	}
	var b strings.Builder
	if err := rep.Write(&b, report.Table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.930 (0.915–0.935)", "7.00 %", "20–30 %", "0.058", "0.084",
		"lies between two baselines"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	stream := madeUp("stream", 0.97)
	if err := stream.report(report.Environment{}).Check(); err == nil ||
		!strings.Contains(err.Error(), "wanted >= 0.980") {
		t.Errorf("a stream is held against 0.98: %v", err)
	}
}

func TestMeteringThatLeavesOutPacketsIsNotMetering(t *testing.T) {
	r := madeUp("udp-18", 1)
	r.accounts = accounts{packets: 900, noRoom: 100, notSent: 7}
	rep := r.report(report.Environment{})
	if err := rep.Check(); err == nil || !strings.Contains(err.Error(), "no room in the kernel's tables is 0.100") {
		t.Errorf("Check = %v", err)
	}
	r.accounts = accounts{packets: 1000}
	if b := r.accounts.budget(); !b.Met {
		t.Errorf("nothing was left out: %+v", b)
	}
}

func TestAgentsThatDoNotKeepUpAreNamed(t *testing.T) {
	r := madeUp("crr-4", 1, 1, 1)
	key := at{r.cells[0].id(), "ipfix"}
	for i := range r.samples[key] {
		r.samples[key][i].records = [2]uint64{2_000_000, 1_000_000} // two for each transaction, and one
	}
	if part := r.keepsUp(r.cells[0], configuration{uni, false}); part != 0.5 {
		t.Errorf("half of the records are %g", part)
	}
	if notes := r.lagNotes(); len(notes) != 1 || !strings.Contains(notes[0], "crr-4, 1 pair, ipfix: only 50 %") {
		t.Errorf("notes %q", notes)
	}
	if notes := madeUp("udp-18", 1).lagNotes(); len(notes) != 0 {
		t.Errorf("flows that do not end: %q", notes)
	}
}

func TestResolution(t *testing.T) {
	if got := resolution(report.Spread{Q1: 0.99, Q3: 1.01, Rounds: 16}); math.Abs(got-0.00502) > 1e-4 {
		t.Errorf("resolution %g", got)
	}
	if !math.IsNaN(resolution(report.Spread{})) {
		t.Error("nothing measured has a resolution")
	}
}

func TestArticlesFigures(t *testing.T) {
	by := map[string]load{}
	for _, l := range loads() {
		by[l.name] = l
	}
	for _, tt := range []struct {
		load  string
		pairs int
		cfg   configuration
		loss  string
		tx    float64
		rate  float64
	}{
		{"udp-512", 1, configuration{uni, false}, "20–30 %", 0.058, 0},
		{"udp-18", 1, configuration{bi, true}, "+2–9 %", 0, 0},
		{"udp-18", 8, configuration{off, false}, "", 0, 2e6},
		{"udp-18", 8, configuration{uni, false}, "25 %", 0, 1.5e6},
		{"udp-18", 8, configuration{bi, false}, "10 %", 0, 1.8e6},
		{"udp-512", 8, configuration{bi, false}, "10 %", 0, 0},
		{"crr-4", 1, configuration{uni, false}, "20–42 %", 0.0104, 0},
		{"crr-4", 8, configuration{off, false}, "", 0, 86e3},
		{"crr-4", 8, configuration{uni, false}, "20–42 %", 0, 49e3},
		{"crr-1", 8, configuration{bi, true}, "+2–10 %", 0, 0},
		{"stream", 8, configuration{bi, true}, "near 0 %", 0, 0},
		{"udp-18", 1, configuration{off, true}, "", 0, 0},
		{"udp-18", 8, configuration{uni, true}, "", 0, 0},
	} {
		t.Run(tt.load, func(t *testing.T) {
			got := article(cell{load: by[tt.load], pairs: tt.pairs}, tt.cfg)
			if (got.loss == nil) != (tt.loss == "") || got.loss != nil && got.loss.String() != tt.loss ||
				got.tx != tt.tx || got.rate != tt.rate {
				t.Errorf("%s ×%d, %s: %v, %+v", tt.load, tt.pairs, tt.cfg.name(), got.loss, got)
			}
		})
	}
	if more := (&lossRange{2, 8, true}).percent(); more != nil {
		t.Errorf("what is in addition has no place of its own: %v", more)
	}
}
