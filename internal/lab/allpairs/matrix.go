package allpairs

import (
	"fmt"
	"slices"

	"heddle/internal/lab/report"
)

// number is what one matrix of a row is about.
type number struct {
	title, marked string
	unit          report.Unit
	of            func(Pair) float64
	marks         func(Pair) bool // nil for none
}

// numbers are those of a row's matrices.
func (m *Measured) numbers() []number {
	streams := m.streams()
	slow := streams[len(streams)/2] * slowShare
	return []number{
		{"throughput, bit/s", "less than half of the median pair's throughput", report.BitsPerSecond,
			func(p Pair) float64 { return p.Stream }, func(p Pair) bool { return p.Stream < slow }},
		{"round-trip time, 99th percentile", "", report.Seconds, func(p Pair) float64 { return p.P99 }, nil},
		{"pings without an answer", "some pings had no answer", report.Count,
			func(p Pair) float64 { return float64(p.Lost) }, func(p Pair) bool { return p.Lost > 0 }},
		{"duplicates, replies to a ping beyond the first", "some replies came more than once", report.Count,
			func(p Pair) float64 { return float64(p.duplicates()) }, func(p Pair) bool { return p.duplicates() > 0 }},
	}
}

// duplicates are replies beyond the first of each ping.
func (p Pair) duplicates() uint64 { return p.Replies - min(p.Replies, p.Pings-p.Lost) }

// pictures are the matrices of a row, from each nested host to each other one.
func (m *Measured) pictures() (list []report.Matrix) {
	var names []string
	for _, p := range m.Pairs {
		if !slices.Contains(names, p.From) {
			names = append(names, p.From)
		}
	}
	for _, n := range m.numbers() {
		most := 0.0
		for _, p := range m.Pairs {
			most = max(most, n.of(p))
		}
		out := report.Matrix{Title: m.row.name + ": " + n.title, From: "from host", To: "to host", Names: names,
			Marked: n.marked, Cells: make([][]*report.Cell, len(names))}
		for i := range out.Cells {
			out.Cells[i] = make([]*report.Cell, len(names))
		}
		for _, p := range m.Pairs {
			c := &report.Cell{Text: n.unit.Format(n.of(p)), Marked: n.marks != nil && n.marks(p)}
			c.Tip = fmt.Sprintf("%s (%s) to %s (%s): %s", p.From, p.FromUplink, p.To, p.ToUplink, c.Text)
			if most > 0 {
				c.Shade = n.of(p) / most
			}
			if to := slices.Index(names, p.To); to >= 0 {
				out.Cells[slices.Index(names, p.From)][to] = c
			}
		}
		list = append(list, out)
	}
	return list
}
