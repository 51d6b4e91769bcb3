package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func plain(v float64) string { return fmt.Sprintf("%g", v) }

func at(x, y float64) Point { return Point{x, Value{y, y * 0.9, y * 1.1}} }

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	var any struct{}
	if err := xml.Unmarshal([]byte(svg), &any); err != nil {
		t.Fatalf("not well-formed: %v\n%s", err, svg)
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("a number that is none:\n%s", svg)
	}
}

// inside checks that every coordinate is within the picture.
func inside(t *testing.T, svg string) {
	t.Helper()
	box := regexp.MustCompile(`viewBox="0 0 (\S+) (\S+)"`).FindStringSubmatch(svg)
	width, _ := strconv.ParseFloat(box[1], 64)
	height, _ := strconv.ParseFloat(box[2], 64)
	for _, m := range regexp.MustCompile(`\b(c?[xy][12]?)="([^"]+)"`).FindAllStringSubmatch(svg, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		limit := width
		if strings.Contains(m[1], "y") {
			limit = height
		}
		if err != nil || v < 0 || v > limit {
			t.Errorf("%s=%q lies outside of %s × %s", m[1], m[2], box[1], box[2])
		}
	}
}

func TestCurves(t *testing.T) {
	k := Curves{Title: "a <title>", XName: "bytes", X: plain, Y: plain, Series: []Curve{
		{Name: "ours & theirs", Points: []Point{at(65536, 3e10), at(1, 4e6), at(64, 1e9)}},
		{Name: "article", Reference: true, Points: []Point{at(1, 2.7e6), at(65536, 3.6e8)}},
	}}
	svg := k.SVG()
	wellFormed(t, svg)
	inside(t, svg)
	for want, n := range map[string]int{
		`aria-label="a &lt;title&gt;"`: 1, "ours &amp; theirs</text>": 1, "<polyline": 2,
		`class="curve sr reference"`: 2, `class="mark sr"`: 3,
		`class="mark s0"`: 4, `class="spread s0"`: 3, ">65536</text>": 1, ">1e+06</text>": 1, ">1e+11</text>": 1,
	} {
		t.Run(want, func(t *testing.T) {
			if got := strings.Count(svg, want); got != n {
				t.Errorf("%d times %s, want %d:\n%s", got, want, n, svg)
			}
		})
	}
	// Points are joined from left to right, whatever their order.
	line := regexp.MustCompile(`points="([^"]+)"/>`).FindStringSubmatch(svg)[1]
	last := math.Inf(-1)
	for _, p := range strings.Fields(line) {
		x, _ := strconv.ParseFloat(strings.Split(p, ",")[0], 64)
		if x < last {
			t.Errorf("the curve runs back: %s", line)
		}
		last = x
	}
}

func TestCurvesOfLittle(t *testing.T) {
	for name, points := range map[string][]Point{
		"one": {at(1, 5)}, "zero": {{1, Value{}}, {2, Value{}}}, "zero and more": {{1, Value{}}, at(10, 1e6)},
		"flat": {at(1, 3), at(2, 3)},
		"tiny": {at(1, 1e-9), at(2, 3e-9)},
	} {
		t.Run(name, func(t *testing.T) {
			svg := Curves{Title: name, X: plain, Y: plain, Series: []Curve{{Name: name, Points: points}}}.SVG()
			wellFormed(t, svg)
			inside(t, svg)
			if n := strings.Count(svg, "mark s0"); n != len(points)+1 {
				t.Errorf("%s: %d marks for %d points and the legend", name, n, len(points))
			}
		})
	}
	if svg := (Curves{X: plain, Y: plain, Series: []Curve{{Name: "nothing"}}}).SVG(); svg != "" {
		t.Errorf("a picture of nothing: %s", svg)
	}
}

func TestBars(t *testing.T) {
	b := Bars{Title: "gaps", X: plain, Names: []string{"in", "out"}, Groups: []Group{
		{Label: "link-down", Values: []*Value{{4, 3, 5}, nil}},
		{Label: "<none>", Values: []*Value{{0, 0, 0}, {10, 10, 10}}},
		{Label: strings.Repeat("long ", 20), Values: []*Value{{1, 1, 1}, {2, 1, 3}}},
	}}
	svg := b.SVG()
	wellFormed(t, svg)
	inside(t, svg)
	for want, n := range map[string]int{
		`<rect class="bar s0"`: 4, `<rect class="bar s1"`: 3, `class="whisker"`: 6, "&lt;none&gt;</text>": 1,
		`class="value"`: 5, "…</text>": 1,
	} {
		t.Run(want, func(t *testing.T) {
			if got := strings.Count(svg, want); got != n {
				t.Errorf("%d times %s, want %d:\n%s", got, want, n, svg)
			}
		})
	}
	width := regexp.MustCompile(`width="([^"]+)" height="16"><title>(\S+), (in|out): (\S+)</title>`)
	lengths := map[string]float64{}
	for _, m := range width.FindAllStringSubmatch(svg, -1) {
		lengths[m[4]], _ = strconv.ParseFloat(m[1], 64)
	}
	if r := lengths["10"] / lengths["4"]; math.Abs(r-2.5) > 0.01 {
		t.Errorf("the bar of 10 is %.2f times as long as that of 4: %v", r, lengths)
	}
	if lengths["0"] != minVisible {
		t.Errorf("the bar of nothing is %.1f long", lengths["0"])
	}
}

func TestValuesOfManyMagnitudesAreMarksOnALogarithmicAxis(t *testing.T) {
	svg := Bars{Title: "frames", X: plain, Names: []string{"x"}, Groups: []Group{
		{Label: "small", Values: []*Value{{2, 1, 3}}}, {Label: "large", Values: []*Value{{2000, 1900, 2100}}},
	}}.SVG()
	wellFormed(t, svg)
	inside(t, svg)
	if strings.Count(svg, `class="mark s0"`) != 2 || strings.Contains(svg, "<rect") ||
		!strings.Contains(svg, ">10000</text>") || !strings.Contains(svg, "small: 2</title>") {
		t.Errorf("no marks on an axis of decades:\n%s", svg)
	}
}

func TestBarsOfNothing(t *testing.T) {
	if svg := (Bars{X: plain, Names: []string{"x"},
		Groups: []Group{{Label: "a", Values: []*Value{nil}}}}).SVG(); svg != "" {
		t.Errorf("a picture of nothing: %s", svg)
	}
	svg := Bars{X: plain, Names: []string{"x"}, Groups: []Group{{Label: "a", Values: []*Value{{0, 0, 0}}}}}.SVG()
	wellFormed(t, svg)
	inside(t, svg)
	if strings.Contains(svg, "legend") {
		t.Error("one name needs no legend")
	}
}

func TestStepsAreRound(t *testing.T) {
	for to, want := range map[float64]string{10: "[0 2 4 6 8 10]", 0.37: "[0 0.1 0.2 0.30000000000000004]",
		1: "[0 0.2 0.4 0.6000000000000001 0.8 1]"} {
		if got := fmt.Sprint(axis{to: to}.steps(5)); got != want {
			t.Errorf("steps to %g: %s, want %s", to, got, want)
		}
	}
}

func TestEscape(t *testing.T) {
	if got := Escape("a\x00<\x1b[1m>\xff&\"'\ttab\u2028"); got != "a&lt;[1m&gt;\ufffd&amp;&#34;&#39;\ttab\u2028" {
		t.Errorf("Escape = %q", got)
	}
}

func TestTheTimeline(t *testing.T) {
	line := Timeline{Title: "silence", From: -0.2, To: 0.8, Event: "link <down>", X: plain, Lanes: []Lane{
		{Label: "out", Start: -0.2, From: 0.1, To: 0.3, End: 0.8},
		{Label: "never again", Start: -0.1, From: 0, To: 0.8, End: 0.8},
	}}
	svg := line.SVG()
	wellFormed(t, svg)
	inside(t, svg)
	for want, n := range map[string]int{`<rect class="bar s0"`: 3, `<rect class="silence"`: 2, `class="event"`: 1,
		"link &lt;down&gt;</text>": 1, ">out</text>": 1, "out: nothing for 0.19999999999999998</title>": 1} {
		t.Run(want, func(t *testing.T) {
			if got := strings.Count(svg, want); got != n {
				t.Errorf("%d times, want %d:\n%s", got, n, svg)
			}
		})
	}
	gap := regexp.MustCompile(`<rect class="silence" x="([^"]+)" y="[^"]+" width="([^"]+)"`).FindAllStringSubmatch(svg, -1)
	first, _ := strconv.ParseFloat(gap[0][2], 64)
	second, _ := strconv.ParseFloat(gap[1][2], 64)
	if r := second / first; math.Abs(r-4) > 0.02 {
		t.Errorf("a silence of four times the length is drawn %.2f times as long", r)
	}
	if svg := (Timeline{X: plain}).SVG(); svg != "" {
		t.Errorf("a picture of nothing: %s", svg)
	}
}

func TestDrawing(t *testing.T) {
	d := Drawing{Boxes: []Box{{Name: "a<b", Kind: "VM", Class: "guest", Level: 1, At: 0.5},
		{Name: "esx1", Kind: "host", Class: "host", Level: 0, At: 0.5, Lines: []string{strings.Repeat("long ", 20)}}},
		Wires: []Wire{{From: 0, To: 1, FromText: "eth0"}, {From: 0, To: 1, ToText: "eth1"}}}
	svg := d.SVG("a lab")
	wellFormed(t, svg)
	inside(t, svg)
	lines := regexp.MustCompile(`<line class="wire" x1="([^"]+)"`).FindAllStringSubmatch(svg, -1)
	if len(lines) != 2 || lines[0][1] == lines[1][1] {
		t.Errorf("two cables between two boxes are drawn as one: %v", lines)
	}
	if !strings.Contains(svg, "a&lt;b</text>") || !strings.Contains(svg, "…</text>") || strings.Count(svg, `class="label"`) != 2 {
		t.Errorf("%s", svg)
	}
	if (Drawing{}).SVG("") != "" {
		t.Error("a picture of nothing")
	}
}

// A matrix has each number as a text, marks with a sign what is marked, and is as wide as its names need.
func TestAMatrixHasItsNumbers(t *testing.T) {
	cell := func(text string, shade float64, marked bool) *Cell {
		return &Cell{text, "tip of " + text, shade, marked}
	}
	m := Matrix{Title: "throughput", From: "from host", To: "to host", Marked: "slow", Names: []string{"a", "<b>"},
		Cells: [][]*Cell{{nil, cell("10M", 1, false)}, {cell("1M", 0.1, true), nil}}}
	svg := m.SVG()
	wellFormed(t, svg)
	for _, want := range []string{">10M</text>", ">▲ 1M</text>", `class="cell d5"`, `class="cell d1 marked"`,
		`class="cell none"`, ">▲ slow</text>", "<title>tip of 1M</title>", ">&lt;b&gt;</text>", ">from host</text>",
		">to host →</text>", `aria-label="throughput"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "style=") {
		t.Error("a matrix of two has a width of its own")
	}
	for len(m.Names) < 40 {
		m.Names = append(m.Names, "host"+strings.Repeat("x", 30))
	}
	m.Cells = make([][]*Cell, len(m.Names))
	for i := range m.Cells {
		m.Cells[i] = make([]*Cell, len(m.Names))
	}
	if svg = m.SVG(); !strings.Contains(svg, `style="width: `) || !strings.Contains(svg, "…</text>") {
		t.Error("a wide matrix is squeezed into its page")
	}
	wellFormed(t, svg)
	if (Matrix{}).SVG() != "" {
		t.Error("a matrix of nothing is drawn")
	}
}
