package msgsize

import (
	"fmt"
	"math"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// columns are the settings in the order of the table: the article's first table beside its second and third.
func (m *Measured) columns() []setting {
	var all []setting
	for _, x := range []struct {
		path     path
		offloads bool
	}{{direct, true}, {direct, false}, {firewall, false}, {firewall, true}} {
		for _, mtu := range m.effort.mtus {
			all = append(all, setting{x.path, guests{x.offloads, mtu}})
		}
	}
	return all
}

// articleKey names the article's figure that belongs to a setting.
func (s setting) articleKey() string { return s.path.key() + "_" + s.offloadsKey() + "_article_bps" }

// Report makes the report of the results.
func (m *Measured) Report() *report.Report {
	r := &report.Report{Name: Name, Title: Title, Environment: report.Collect(time.Now())}
	for _, size := range m.effort.sizes {
		r.Rows = append(r.Rows, m.row(size))
	}
	for _, s := range m.columns() {
		if b, ok := m.budget(s); ok {
			r.Budgets = append(r.Budgets, b)
		}
	}
	r.Conclusions, r.Notes = m.conclusions(), m.notes()
	r.Labs = topology.OfText(labText(m.effort.sets()))
	r.Plots = m.plots()
	return r
}

// row is a line of the table: the article's figures and ours for one size, and further values for programs.
func (m *Measured) row(size int) report.Row {
	row := report.Row{{Name: "message_bytes", Title: "bytes", Value: size, Unit: report.Count}}
	var details report.Row
	for i, s := range m.columns() {
		short := fmt.Sprintf("%s %s: ", s.path.short(), s.offloadsKey())
		figure := published(size, s.path, s.offloads)
		if i%len(m.effort.mtus) == 0 && !math.IsNaN(figure) {
			row = append(row, report.Field{Name: s.articleKey(), Title: short + "article", Value: figure,
				Unit: report.BitsPerSecond})
		}
		c := cell{size, s}
		row = append(row, report.Field{Name: s.key() + "_bps", Title: fmt.Sprintf("%s%d", short, s.mtu),
			Value: spread(m.rates(c)), Unit: report.BitsPerSecond, Brief: true})
		details = append(details, m.details(c, figure)...)
	}
	return append(row, details...)
}

func (m *Measured) details(c cell, figure float64) report.Row {
	retransmits := uint64(0)
	for _, s := range m.samples[c] {
		retransmits += s.retransmits
	}
	row := report.Row{
		{Name: c.key() + "_bytes_per_segment", Value: spread(m.of(c, func(s sample) float64 { return s.perSegment })),
			Unit: report.Bytes, Hidden: true},
		{Name: c.key() + "_cpu_s_per_gb", Value: spread(m.of(c, func(s sample) float64 { return s.cpu })),
			Unit: report.SecondsPerGB, Hidden: true},
		{Name: c.key() + "_retransmits", Value: retransmits, Unit: report.Count, Hidden: true},
	}
	if !math.IsNaN(figure) {
		row = append(row, report.Field{Name: c.key() + "_of_article",
			Value: report.Summarise(m.rates(c)).Median / figure, Unit: report.Ratio, Hidden: true})
	}
	if c.path == firewall {
		row = append(row, report.Field{Name: c.key() + "_of_direct", Value: spread(m.ofDirect(c)), Unit: report.Ratio,
			Hidden: true})
	}
	return row
}

// ofDirect compares a cell through the firewall with the direct path, round by round.
func (m *Measured) ofDirect(c cell) []float64 {
	return report.Ratios(m.rates(c), m.rates(cell{c.size, setting{direct, c.guests}}))
}

// budget compares a setting with all of the article's figures for it: the value is the least ratio of all sizes. ok is
// false if the article has none.
func (m *Measured) budget(s setting) (b report.Budget, ok bool) {
	least, at := math.Inf(1), 0
	for _, size := range m.effort.sizes {
		figure := published(size, s.path, s.offloads)
		if math.IsNaN(figure) {
			continue
		}
		if r := report.Summarise(m.rates(cell{size, s})).Median / figure; r < least {
			least, at = r, size
		}
	}
	if at == 0 {
		return b, false
	}
	return report.Hold(fmt.Sprintf("%s: least of the article's figures (%d B)", s, at), least, report.Ratio,
		report.AtLeast, 1), true
}

// spread is the spread of the rounds, nil ("not measured") without any.
func spread(rounds []float64) any {
	if s := report.Summarise(rounds); s.Rounds > 0 {
		return s
	}
	return nil
}

func (m *Measured) plots() []report.Plot {
	all := []report.Plot{
		{Title: "VM to VM", X: "message_bytes"},
		{Title: "Through the virtual firewall", X: "message_bytes"},
		{Title: "Mean payload of a segment", X: "message_bytes"},
	}
	add := func(to int, name, field string, reference bool) {
		all[to].Series = append(all[to].Series, report.Series{Name: name, Field: field, Reference: reference})
	}
	// The kinds of guests have a fixed order, so that each has one colour in all charts.
	for _, way := range []path{direct, firewall} {
		for _, on := range []bool{true, false} {
			if s := (setting{way, guests{offloads: on}}); !math.IsNaN(published(m.effort.sizes[0], way, on)) {
				add(int(way), "article, offloads "+s.offloadsKey(), s.articleKey(), true)
			}
		}
		for _, g := range m.effort.sets() {
			s := setting{way, g}
			add(int(way), g.String(), s.key()+"_bps", false)
			if g.mtu == m.effort.mtus[0] {
				add(2, s.String(), s.key()+"_bytes_per_segment", false)
			}
		}
	}
	return all
}
