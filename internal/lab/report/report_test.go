package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

func TestSummarise(t *testing.T) {
	tests := []struct {
		in   []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{math.NaN(), math.Inf(1)}, Spread{}},
		{[]float64{7}, Spread{7, 7, 7, 7, 7, 1}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1.75, 3.25, 1, 4, 4}},
		{[]float64{5, 1, 4, math.NaN(), 2, 3}, Spread{3, 2, 4, 1, 5, 5}},
	}
	for _, tt := range tests {
		if got := Summarise(tt.in); got != tt.want {
			t.Errorf("Summarise(%v) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
	in := []float64{3, 1, 2}
	Summarise(in)
	if in[0] != 3 || in[1] != 1 {
		t.Errorf("Summarise sorted its caller's samples: %v", in)
	}
}

func TestRatiosPairsRounds(t *testing.T) {
	got := Ratios([]float64{1, 6, 0, math.NaN(), 9, 5}, []float64{2, 3, 4, 1, 0})
	if len(got) != 2 || got[0] != 0.5 || got[1] != 2 {
		t.Errorf("Ratios = %v, want [0.5 2]", got)
	}
}

func TestUnitFormat(t *testing.T) {
	tests := []struct {
		unit Unit
		x    float64
		want string
	}{
		{BitsPerSecond, 34.8e9, "34.8 Gb/s"}, {PerSecond, 61512, "61.5 k/s"}, {PacketsPerSecond, 300_000, "300 kpps"},
		{Seconds, 77e-9, "77.0 ns"}, {Seconds, 0.9996, "1.00 s"}, {Seconds, 3e-12, "0.003 ns"}, {Seconds, 0, "0 s"},
		{Ratio, 0.9512, "0.951"}, {Count, 12345678, "12345678"}, {SecondsPerGB, 0.312, "0.312 s/GB"},
		{None, 4, "4.00"}, {PerSecond, 999.7, "1.00 k/s"}, {Bytes, 1514, "1.51 kB"}, {Ratio, math.NaN(), "–"},
	}
	for _, tt := range tests {
		if got := tt.unit.Format(tt.x); got != tt.want {
			t.Errorf("%q.Format(%g) = %q, want %q", tt.unit, tt.x, got, tt.want)
		}
	}
}

func example() *Report {
	return &Report{
		Name:        "bench switch",
		Environment: Environment{OS: "linux", Kernel: "6.18", CPUs: 2, Commit: strings.Repeat("a", 40) + "+changes"},
		Rows: []Row{
			{{Name: "peer", Value: "direct"},
				{Name: "bps", Title: "stream", Value: Spread{34.8e9, 33e9, 35e9, 30e9, 36e9, 10}, Unit: BitsPerSecond},
				{Name: "raw", Value: uint64(7), Hidden: true}, {Name: "brief", Value: Spread{5e-6, 1e-6, 9e-6, 0, 1, 3},
					Unit: Seconds, Brief: true}},
			{{Name: "peer", Value: "heddle"}, {Name: "bps", Title: "stream", Value: Spread{}, Unit: BitsPerSecond},
				{Name: "extra", Value: math.NaN()}, {Name: "seen", Value: "2/1", TableOnly: true},
				{Name: "on", Value: true}},
		},
		Budgets: []Budget{Hold("stream of direct", 0.97, Ratio, AtLeast, 0.95), Hold("frame", 81e-9, Seconds, AtMost,
			80e-9)},
		Notes: []string{strings.Repeat("word ", 40)},
	}
}

func TestJSONKeepsOrderAndSaysNullForNotMeasured(t *testing.T) {
	var b bytes.Buffer
	if err := example().Write(&b, JSON); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"rows":[{"peer":"direct","bps":{"median":34800000000,"q1":33000000000,`,
		`{"peer":"heddle","bps":null,"extra":null,"on":true}`,
		`{"name":"stream of direct","value":0.97,"unit":"ratio","bound":">=","budget":0.95,"met":true}`,
	} {
		if !strings.Contains(compact.String(), want) {
			t.Errorf("JSON lacks %s in\n%s", want, compact.String())
		}
	}
}

func TestYAMLCarriesTheSameValues(t *testing.T) {
	var b bytes.Buffer
	if err := example().Write(&b, YAML); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Rows []map[string]any `yaml:"rows"`
	}
	if err := yaml.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Rows) != 2 || back.Rows[0]["peer"] != "direct" || back.Rows[1]["bps"] != nil ||
		back.Rows[1]["on"] != true {
		t.Errorf("YAML came back as %v", back.Rows)
	}
	if i, j := strings.Index(b.String(), "peer:"), strings.Index(b.String(), "bps:"); i > j {
		t.Errorf("YAML lost the order of the fields:\n%s", b.String())
	}
}

func TestEmptyReportHasListsNotNull(t *testing.T) {
	var b bytes.Buffer
	if err := (&Report{Name: "x"}).Write(&b, JSON); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"rows": []`) || !strings.Contains(b.String(), `"budgets": []`) {
		t.Errorf("null lists in %s", b.String())
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := example().Write(&b, Table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"34.8 Gb/s (33.0–35.0)", "aaaaaaaaaaaa+changes", "≥ 0.950", "81.0 ns  ≤ 80.0 ns  NO",
		"yes", "5.00 µs  –"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "raw") {
		t.Errorf("table shows a hidden field:\n%s", b.String())
	}
}

func TestTableIsNeverWiderThan100Columns(t *testing.T) {
	r := &Report{Name: "wide"}
	var row Row
	for _, c := range "abcdefghijklmnopqrst" {
		row = append(row, Field{Name: strings.Repeat(string(c), 9), Value: string(c)})
	}
	r.Rows = []Row{row, row}
	var b bytes.Buffer
	if err := r.Write(&b, Table); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(line); n > tableWidth+1 {
			t.Errorf("line of %d columns: %s", n, line)
		}
	}
	for _, c := range "abcdefghijklmnopqrst" {
		if n := strings.Count(b.String(), strings.Repeat(string(c), 9)); n != 1 && c != 'a' {
			t.Errorf("column %c has %d headings", c, n)
		}
	}
	if strings.Count(b.String(), "aaaaaaaaa") != 3 {
		t.Errorf("the first column is not repeated in each block:\n%s", b.String())
	}
}

func TestCheckNamesMissedBudgets(t *testing.T) {
	err := example().Check()
	if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "frame is 81.0 ns, wanted <= 80.0 ns") {
		t.Errorf("Check = %v", err)
	}
	if strings.Contains(err.Error(), "stream") {
		t.Errorf("Check blames a budget that is met: %v", err)
	}
	ok := &Report{Budgets: []Budget{Hold("x", 0.95, Ratio, AtLeast, 0.95), Hold("y", 80, None, AtMost, 80)}}
	if err := ok.Check(); err != nil {
		t.Errorf("values on the budget do not meet it: %v", err)
	}
	if never := Hold("z", math.NaN(), Seconds, AtMost, 1); never.Met || never.Shown() != "never" {
		t.Errorf("NaN meets a budget, or is a time: %+v, %s", never, never.Shown())
	}
}

func TestEnvironmentFromFiles(t *testing.T) {
	const vuln = "sys/devices/system/cpu/vulnerabilities/"
	e := collectFrom(fstest.MapFS{
		"proc/sys/kernel/osrelease": {Data: []byte("6.18.0\n")},
		"proc/loadavg":              {Data: []byte("0.52 0.40 0.30 1/200 99\n")},
		"proc/cpuinfo":              {Data: []byte("processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\n")},
		vuln + "spectre_v2":         {Data: []byte("Mitigation: Retpolines\n")},
		vuln + "meltdown":           {Data: []byte("Not affected\n")},
	})
	if e.Kernel != "6.18.0" || e.Load != "0.52" || e.CPUModel != "AMD EPYC" || len(e.Mitigations) != 1 ||
		e.Mitigations[0] != "spectre_v2" {
		t.Errorf("environment %+v", e)
	}
	if e := collectFrom(fstest.MapFS{}); e.Kernel != "" || len(e.Mitigations) != 0 || e.Mitigations == nil {
		t.Errorf("environment of a system that tells nothing: %+v", e)
	}
	now := time.Date(2026, 11, 21, 9, 0, 0, 5, time.UTC)
	if e := Collect(now); e.CPUs < 1 || e.Go == "" || !e.Date.Equal(now.Truncate(time.Second)) {
		t.Errorf("Collect = %+v", e)
	}
	v, commit := version(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}})
	if v != "v1.2.3" || commit != "abc+changes" {
		t.Errorf("version = %q %q", v, commit)
	}
}

// What YAML reads is what JSON reads: a date is a text in both, and so is a word that YAML 1.1 takes for a truth value.
func TestWrite_YAMLReadsAsJSONDoes(t *testing.T) {
	r := &Report{Name: "x", Environment: Environment{Date: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC),
		Load: "0.52"},
		Rows: []Row{{{Name: "offloads", Value: "off"}, {Name: "rate", Value: 1e21}, {Name: "mac", Value: "12:30:00"}}}}
	var asJSON, asYAML bytes.Buffer
	if err := errors.Join(r.Write(&asJSON, JSON), r.Write(&asYAML, YAML)); err != nil {
		t.Fatal(err)
	}
	var j, y any
	if err := errors.Join(json.Unmarshal(asJSON.Bytes(), &j), yaml.Unmarshal(asYAML.Bytes(), &y)); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(y)
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if err := json.Unmarshal(again, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(j, back); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{`date: "2026-11-22T10:00:00Z"`, `offloads: "off"`} {
		if !strings.Contains(asYAML.String(), want) {
			t.Errorf("no %s in\n%s", want, asYAML.String())
		}
	}
}
