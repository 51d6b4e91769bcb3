package msgsize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
)

func TestSizesAreThoseOfTheArticle(t *testing.T) {
	e := Options{}.effort()
	if got := fmt.Sprint(e.sizes, e.mtus); got != "[1 4 16 64 256 1024 4098 16384 65536] [1500 9000]" {
		t.Errorf("measured are %s", got)
	}
	for _, c := range []struct {
		size     int
		path     path
		offloads bool
		want     float64
	}{{1, direct, true, 2.71e6}, {64, firewall, false, 108.85e6}, {65536, firewall, true, 382.16e6},
		{4098, direct, true, 359.67e6}} {
		if got := published(c.size, c.path, c.offloads); math.Abs(got-c.want) > 1 {
			t.Errorf("published(%d, %s, %v) = %g, want %g", c.size, c.path, c.offloads, got, c.want)
		}
	}
	if !math.IsNaN(published(64, direct, false)) || !math.IsNaN(published(65, direct, true)) {
		t.Error("a figure that the article does not have")
	}
}

func TestRunsTakeTheirTime(t *testing.T) {
	for _, c := range []struct {
		o     Options
		cells int
		most  time.Duration
	}{{Options{}, 72, 5 * time.Minute}, {Options{Quick: true}, 16, 45 * time.Second},
		{Options{Quick: true, Rows: []string{"4098"}}, 4, 20 * time.Second}} {
		e, err := c.o.selected()
		if err != nil {
			t.Fatal(err)
		}
		// Starting and ending two processes takes about 100 ms.
		took := time.Duration(len(e.cells())*e.rounds) * (e.duration + e.warmup + 100*time.Millisecond)
		if len(e.cells()) != c.cells || took > c.most {
			t.Errorf("%+v: %d cells and %v, want %d and at most %v", c.o, len(e.cells()), took, c.cells, c.most)
		}
	}
}

func TestRowsAreMessageSizes(t *testing.T) {
	e, err := Options{Rows: []string{"65536", "1"}}.selected()
	if err != nil || fmt.Sprint(e.sizes) != "[65536 1]" {
		t.Errorf("%v, %v", e.sizes, err)
	}
	if err := (Options{Rows: []string{"4096"}}).Check(); !errors.Is(err, experiment.ErrUnknown) ||
		!strings.Contains(err.Error(), "4098") {
		t.Errorf("unknown row: %v", err)
	}
}

func TestBothPathsOfACellFollowOneAnother(t *testing.T) {
	all := Options{}.effort().cells()
	seen := map[cell]bool{}
	for i, c := range all {
		if seen[c] {
			t.Errorf("%v is there twice", c)
		}
		seen[c] = true
		if i%2 == 1 && (all[i-1].size != c.size || all[i-1].guests != c.guests || all[i-1].path != direct ||
			c.path != firewall) {
			t.Errorf("%v follows %v", c, all[i-1])
		}
	}
}

func TestTheLabIsWhatItsTableSays(t *testing.T) {
	e := Options{}.effort()
	s, err := scenario.Parse("x.yaml", []byte(labText(e.sets())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.VMs) != 12 || len(s.Routers) != 4 || len(s.Host(host).Config.Ports) != 20 || len(s.Links) != 0 {
		t.Errorf("%d VMs, %d firewalls, %d ports, %d links", len(s.VMs), len(s.Routers), len(s.Host(host).Config.Ports),
			len(s.Links))
	}
	vlans := map[int]bool{}
	for _, g := range s.Host(host).Config.Switches[0].PortGroups {
		if g.VLAN == nil || vlans[g.VLAN.Access] {
			t.Errorf("port group %s shares its VLAN", g.Name)
			continue
		}
		vlans[g.VLAN.Access] = true
	}
	for _, v := range s.VMs {
		if want := 1500; strings.HasSuffix(v.Name, "9000") && v.MTU != 9000 || strings.HasSuffix(v.Name, "1500") &&
			v.MTU != want {
			t.Errorf("%s has an MTU of %d", v.Name, v.MTU)
		}
	}
}

func TestParseCounters(t *testing.T) {
	const text = `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"counter": {"family": "inet", "name": "established", "packets": 5, "bytes": 700}},
		{"counter": {"name": "begun", "packets": 1, "bytes": 60}}, {"counter": {"name": "refused", "packets": 0, "bytes": 0}}]}`
	all, err := parseCounters([]byte(text))
	if err != nil || all["established"] != (counter{5, 700}) || all["begun"].Packets != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	for bad, says := range map[string]string{"oops": "counters", `{"nftables": []}`: `no counter "established"`} {
		t.Run(bad, func(t *testing.T) {
			if _, err := parseCounters([]byte(bad)); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("parseCounters(%s) = %v", bad, err)
			}
		})
	}
}

// measured is a made-up outcome: the article's figures, twice as fast directly, three times through the firewall.
func measured(o Options) *Measured {
	e := o.effort()
	m := &Measured{effort: e, samples: map[cell][]sample{}, passed: 4711}
	for _, c := range e.cells() {
		rate := 2 * published(c.size, direct, true)
		if c.path == firewall {
			rate = 3 * published(c.size, firewall, c.offloads)
		}
		for round := range 3 {
			m.samples[c] = append(m.samples[c], sample{bitsPerSecond: rate * float64(9+round) / 10, perSegment: 100,
				retransmits: 1, cpu: 0.5})
		}
	}
	return m
}

func TestTheReportHasTheArticlesTablesBesideOurs(t *testing.T) {
	r := measured(Options{}).Report()
	var out bytes.Buffer
	if err := r.Write(&out, report.JSON); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Title   string
		Rows    []map[string]any
		Budgets []report.Budget
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 9 || len(doc.Budgets) != 6 || doc.Title == "" {
		t.Fatalf("%d rows, %d budgets", len(doc.Rows), len(doc.Budgets))
	}
	row := doc.Rows[3]
	for key, want := range map[string]float64{
		"message_bytes": 64, "direct_on_article_bps": 130.74e6, "firewall_off_article_bps": 108.85e6,
		"firewall_on_article_bps":   230.65e6,
		"direct_on_1500_of_article": 2, "firewall_off_9000_of_article": 3, "direct_off_9000_retransmits": 3,
	} {
		t.Run(key, func(t *testing.T) {
			if got, _ := row[key].(float64); math.Abs(got-want) > want*1e-9 {
				t.Errorf("%s is %v, want %g", key, row[key], want)
			}
		})
	}
	for _, key := range []string{"direct_on_1500_bps", "direct_off_9000_bps", "firewall_on_9000_cpu_s_per_gb",
		"firewall_on_1500_bytes_per_segment", "firewall_on_1500_of_direct"} {
		if s, _ := row[key].(map[string]any); s["rounds"] != 3.0 {
			t.Errorf("%s is %v, want a spread of three rounds", key, row[key])
		}
	}
	if _, there := row["direct_off_article_bps"]; there {
		t.Error("the article has no figures for VM to VM with the default driver")
	}
	out.Reset()
	if err := r.Write(&out, report.Table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VM-VM on: article", "VM-VM off: 9000", "FW off: article",
		"\nbytes  FW off: article  FW off: 1500  FW off: 9000  FW on: article  FW on: 1500  FW on: 9000\n", "2.71 Mb/s",
		"366 Mb/s", "65536 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestOneFigureBelowTheArticlesMissesTheBudget(t *testing.T) {
	m := measured(Options{Quick: true})
	r := m.Report()
	if err := r.Check(); err != nil || len(r.Budgets) != 3 {
		t.Errorf("%v, %+v", err, r.Budgets)
	}
	c := cell{1024, setting{firewall, guests{false, 1500}}}
	for i := range m.samples[c] {
		m.samples[c][i].bitsPerSecond = 0.9 * published(1024, firewall, false)
	}
	err := m.Report().Check()
	if !errors.Is(err, report.ErrBudget) || !strings.Contains(err.Error(), "VM-FW-VM, offloads off, MTU 1500") ||
		!strings.Contains(err.Error(), "(1024 B) is 0.900") {
		t.Errorf("Check = %v", err)
	}
	if strings.Contains(err.Error(), "offloads on") {
		t.Errorf("settings are blamed that are fast enough: %v", err)
	}
}

func TestNotesHoldTheArticlesStatementsAgainstWhatWasMeasured(t *testing.T) {
	r := measured(Options{Quick: true}).Report()
	notes := strings.Join(append(r.Conclusions, r.Notes...), "\n")
	for _, want := range []string{
		"firewall of direct with offloads on: 1.569 at 65536 B (article 1.046), 2.358 at 1 (article 1.572)",
		"2.926 times as fast at 65536 B (article 2.926)", "4711 packets", "a segment carried 100 B on the direct way",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

func TestPlotsNameColumnsThatThereAre(t *testing.T) {
	for _, o := range []Options{{}, {Quick: true}} {
		r := measured(o).Report()
		if len(r.Plots) != 3 {
			t.Fatalf("%d plots", len(r.Plots))
		}
		for _, p := range r.Plots {
			if len(p.Series) < 3 {
				t.Errorf("%s has %d curves", p.Title, len(p.Series))
			}
			for _, s := range append(p.Series, report.Series{Field: p.X}) {
				if f, ok := r.Rows[0].Field(s.Field); !ok {
					t.Errorf("%s: no column %q", p.Title, s.Field)
				} else if _, ok := f.Numeric(); !ok {
					t.Errorf("%s: column %q is no number", p.Title, s.Field)
				}
			}
		}
	}
}
