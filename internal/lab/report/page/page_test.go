package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/report"
)

var update = flag.Bool("update", false, "write the golden pages anew")

func environmentOfTests() report.Environment {
	return report.Environment{
		Date: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC), OS: "linux", Kernel: "6.18.0", Arch: "amd64", CPUs: 2,
		CPUModel: "AMD EPYC",
		Go:       "go1.26", Heddle: "v1.2.3", Commit: "abcdef", Load: "0.10", Mitigations: []string{"spectre_v2"},
	}
}

func spread(median float64) report.Spread {
	return report.Spread{Median: median, Q1: 0.9 * median, Q3: 1.2 * median, Min: 0.8 * median, Max: 1.3 * median,
		Rounds: 6}
}

// curvesReport has a numeric x axis and a plot of its own.
func curvesReport() *report.Report {
	r := &report.Report{
		Name: "message-size", Title: "throughput by message size", Environment: environmentOfTests(),
		Budgets: []report.Budget{report.Hold("least of the article's", 3.5, report.Ratio, report.AtLeast, 1)},
		Notes:   []string{"A sentence."}, Conclusions: []string{"It is fast."},
		Explained: "explanation/failover.md",
		Labs:      []report.Picture{{Title: "The lab", SVG: `<svg class="plot"></svg>` + "\n"}},
		Timelines: []report.Timeline{{Title: "silence", Event: "cut", From: -0.2, To: 0.8, Lanes: []report.Lane{
			{Label: "in", Start: -0.2, From: 0.01, To: 0.03, End: 0.8}}}},
		Plots: []report.Plot{{Title: "VM to VM", X: "size", Series: []report.Series{
			{Field: "ours"}, {Name: "article", Field: "article", Reference: true}}}},
	}
	for i, size := range []int{1, 64, 4096, 65536} {
		row := report.Row{
			{Name: "size", Value: size, Unit: report.Count},
			{Name: "article", Value: []float64{2.71e6, 130e6, 359e6, 365e6}[i], Unit: report.BitsPerSecond},
			{Name: "ours", Title: "our switch", Value: spread([]float64{8e6, 500e6, 11e9, 30e9}[i]),
				Unit: report.BitsPerSecond, Brief: true},
		}
		if size == 64 {
			row[2].Value = nil // not measured: a gap in the curve and in the table
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// barsReport has no plots, misses a budget, and is full of markup.
func barsReport() *report.Report {
	return &report.Report{
		Name: `<b>"bars"&</b>`, Title: "</title><script>alert(1)</script>", Environment: environmentOfTests(),
		Rows: []report.Row{
			{{Name: "row", Value: "one<br>"}, {Name: "gap", Title: `gap "in" <i>`, Value: spread(0.004),
				Unit: report.Seconds}, {Name: "lost", Value: 3, Unit: report.Count},
				{Name: "raw_s", Value: spread(77e-9), Unit: report.Seconds, Hidden: true}},
			{{Name: "row", Value: "two\x00\x1b[31m"}, {Name: "gap", Value: report.Spread{}, Unit: report.Seconds},
				{Name: "lost", Value: 0, Unit: report.Count}},
			{{Name: "row", Value: "three 'long' " + strings.Repeat("x", 50)},
				{Name: "gap", Value: spread(0.050), Unit: report.Seconds}, {Name: "lost", Value: nil}},
		},
		Budgets: []report.Budget{report.Hold("gap <1>", 0.06, report.Seconds, report.AtMost, 0.05),
			report.Hold("lost", 0, report.Count, report.Exactly, 0)},
		Notes: []string{"a < b && c > d", "]]> --> </style>"},
	}
}

func render(t *testing.T, r *report.Report, command string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, command); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPagesAreAsTheyWere(t *testing.T) {
	for name, r := range map[string]*report.Report{"curves": curvesReport(), "bars": barsReport(),
		"empty": {Name: "empty"}} {
		t.Run(name, func(t *testing.T) {
			got := render(t, r, "heddle lab run "+name+" --quick")
			file := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; look at it in a browser and, when it is right, run the test with -update", file)
			}
		})
	}
}

// texts returns the character data of a page, and checks that the page is well-formed and loads nothing.
func texts(t *testing.T, page string) (all []string, elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, elements
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			elements[x.Name.Local]++
			for _, a := range x.Attr {
				n := a.Name.Local
				if n == "href" && x.Name.Local == "a" && strings.HasPrefix(a.Value, docs) {
					continue // a link that the reader may follow; the page does not need it
				}
				if n == "src" || n == "href" || strings.HasPrefix(n, "on") {
					t.Errorf("<%s> has %s=%q", x.Name.Local, n, a.Value)
				}
			}
		case xml.CharData:
			all = append(all, string(x))
		}
	}
}

func TestPagesAreSelfContainedAndHoldEveryRow(t *testing.T) {
	for _, r := range []*report.Report{curvesReport(), barsReport()} {
		page := render(t, r, `heddle lab run x --row="<a>"`)
		all, elements := texts(t, page)
		for _, forbidden := range []string{"script", "link", "img", "iframe", "object", "i", "b", "br"} {
			if elements[forbidden] > 0 {
				t.Errorf("%s: %d elements <%s>", r.Name, elements[forbidden], forbidden)
			}
		}
		if strings.Contains(page, "@import") || strings.Contains(page, "url(") {
			t.Error("the style sheet loads something")
		}
		if elements["svg"] == 0 {
			t.Errorf("%s: no picture", r.Name)
		}
		held := map[string]bool{}
		for _, s := range all {
			held[s] = true
		}
		for _, line := range r.Grid() {
			for _, cell := range line {
				cell = strings.Map(func(c rune) rune {
					if c < ' ' {
						return -1
					}
					return c
				}, cell)
				median, rest, spread := strings.Cut(cell, " (")
				if !held[cell] && !(spread && held[median+" "] && held["("+rest]) {
					t.Errorf("%s: the page lacks %q", r.Name, cell)
				}
			}
		}
		for _, note := range append(slices.Concat(r.Conclusions, r.Notes), r.Budgets[0].Name, "AMD EPYC", "spectre_v2",
			`heddle lab run x --row="<a>"`) {
			if !strings.Contains(strings.Join(all, "\n"), note) {
				t.Errorf("%s: the page lacks %q", r.Name, note)
			}
		}
	}
}

func TestMissedBudgetsAreToldAtOnce(t *testing.T) {
	if page := render(t, barsReport(), ""); !strings.Contains(page, "1 of 2 budgets missed") ||
		!strings.Contains(page, `<td class="missed">NO</td>`) {
		t.Error("a missed budget is not told")
	}
	if page := render(t, curvesReport(), ""); !strings.Contains(page, "1 of 1 budgets met") {
		t.Error("met budgets are not told")
	}
}

// TestTheOrderIsThatOfAReader: the results, the lab, the numbers, then the method.
func TestTheOrderIsThatOfAReader(t *testing.T) {
	page := render(t, curvesReport(), "")
	at := -1
	for _, heading := range []string{"<h1>Message size</h1>", "<h2>What it shows</h2>", "<h2>The lab</h2>",
		"<h2>When packets came</h2>", "<h2>Results</h2>", "<h2>Charts</h2>", "<h2>Budgets</h2>",
		"<h2>How it was measured</h2>", "<h2>Test system</h2>"} {
		next := strings.Index(page, heading)
		if next <= at {
			t.Errorf("%s is at %d, what goes before it at %d", heading, next, at)
		}
		at = next
	}
	if !strings.Contains(page, ">explanation/failover.md</a>") {
		t.Error("no way to the explanation")
	}
}

func TestTitlesAreWords(t *testing.T) {
	for name, want := range map[string]string{"failover": "Failover",
		"nested-mac-learning (simulated)": "Nested MAC learning",
		"bench ipfix-codec":               "Benchmark: IPFIX codec", "": ""} {
		t.Run(want, func(t *testing.T) {
			if got := title(&report.Report{Name: name}); got != want {
				t.Errorf("%q", got)
			}
		})
	}
	if got := about(&report.Report{Title: "what happens (real traffic only)"}); got != "what happens" {
		t.Errorf("%q", got)
	}
}

// TestACalculationSaysSo: nothing was measured, there are no rounds, and a column without numbers is left out.
func TestACalculationSaysSo(t *testing.T) {
	r := &report.Report{Name: "x (simulated)", Simulated: true, Environment: environmentOfTests(),
		Notes: []string{"By the model."},
		Rows: []report.Row{{{Name: "row", Value: "a"}, {Name: "replies", Value: 2.0},
			{Name: "throughput", Value: nil, Unit: report.BitsPerSecond}, {Name: "link", Value: "1/2"}}},
		Plots: []report.Plot{{Title: "Replies", Series: []report.Series{{Field: "replies"}}}}}
	page := render(t, r, "")
	for _, want := range []string{"Calculated <time>", "<h2>How it was calculated</h2>", `<th class="words">link</th>`,
		`<td class="words">1/2</td>`, "<th>replies</th>", "<td>2.00</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, wrong := range []string{"Measured", "quartile", "throughput", "–"} {
		if _, body, _ := strings.Cut(page, "</style>"); strings.Contains(body, wrong) {
			t.Errorf("it says %q", wrong)
		}
	}
}
