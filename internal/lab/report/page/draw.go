package page

import (
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/chart"
)

// draw returns one picture of the report's rows, "" if none of them has a value for it.
func draw(r *report.Report, p report.Plot) string {
	if p.X != "" {
		return curves(r, p).SVG()
	}
	return bars(r, p).SVG()
}

// scope is the part of its report that a plot shows.
type scope struct {
	report *report.Report
	unit   report.Unit
}

func scopeOf(r *report.Report, p report.Plot) scope {
	s := scope{r, p.Unit}
	for _, series := range p.Series {
		for _, row := range r.Rows {
			f, ok := row.Field(series.Field)
			if _, isNumber := f.Numeric(); s.unit == report.None && ok && isNumber {
				s.unit = f.Unit
			}
		}
	}
	return s
}

// name returns the name of a series.
func (s scope) name(series report.Series) string {
	if series.Name != "" {
		return series.Name
	}
	return heading(s.report, series.Field)
}

// heading returns the heading of a column.
func heading(r *report.Report, field string) string {
	for _, row := range r.Rows {
		if f, ok := row.Field(field); ok {
			return f.Heading()
		}
	}
	return field
}

// number returns the median of a field in the plot's unit, with its quartiles.
func (s scope) number(row report.Row, field string) (chart.Value, bool) {
	f, ok := row.Field(field)
	if !ok || f.Unit != s.unit {
		return chart.Value{}, false
	}
	n, ok := f.Numeric()
	return chart.Value{Y: n.Median, Low: n.Q1, High: n.Q3}, ok
}

func bars(r *report.Report, p report.Plot) chart.Bars {
	s := scopeOf(r, p)
	b := chart.Bars{Title: p.Title, X: s.unit.Format}
	for _, series := range p.Series {
		b.Names = append(b.Names, s.name(series))
	}
	labels := r.Labels()
	for i, row := range r.Rows {
		g := chart.Group{Label: labels[i], Values: make([]*chart.Value, len(p.Series))}
		some := false
		for n, series := range p.Series {
			if v, ok := s.number(row, series.Field); ok {
				g.Values[n], some = &v, true
			}
		}
		if some {
			b.Groups = append(b.Groups, g)
		}
	}
	return b
}

func curves(r *report.Report, p report.Plot) chart.Curves {
	s := scopeOf(r, p)
	along := scopeOf(r, report.Plot{Series: []report.Series{{Field: p.X}}})
	k := chart.Curves{Title: p.Title, XName: heading(r, p.X), X: along.unit.Format, Y: s.unit.Format}
	for _, series := range p.Series {
		c := chart.Curve{Name: s.name(series), Reference: series.Reference}
		for _, row := range r.Rows {
			x, known := along.number(row, p.X)
			v, ok := s.number(row, series.Field)
			if known && ok && x.Y > 0 {
				c.Points = append(c.Points, chart.Point{X: x.Y, Value: v})
			}
		}
		if len(c.Points) > 0 {
			k.Series = append(k.Series, c)
		}
	}
	return k
}

// timeline converts a report's timeline for drawing.
func timeline(t report.Timeline) chart.Timeline {
	out := chart.Timeline{Title: t.Title, Event: t.Event, From: t.From, To: t.To, X: report.Seconds.Format}
	for _, l := range t.Lanes {
		out.Lanes = append(out.Lanes, chart.Lane{Label: l.Label, Start: l.Start, From: l.From, To: l.To, End: l.End})
	}
	return out
}

// matrix converts a report's matrix for drawing.
func matrix(m report.Matrix) chart.Matrix {
	out := chart.Matrix{Title: m.Title, From: m.From, To: m.To, Names: m.Names, Marked: m.Marked}
	for _, row := range m.Cells {
		var cells []*chart.Cell
		for _, c := range row {
			if c == nil {
				cells = append(cells, nil)
				continue
			}
			cells = append(cells, &chart.Cell{Text: c.Text, Tip: c.Tip, Shade: c.Shade, Marked: c.Marked})
		}
		out.Cells = append(out.Cells, cells)
	}
	return out
}
