package page

import (
	"heddle/internal/report"
	"heddle/internal/report/chart"
)

// draw makes one picture of the report's rows, "" when none of them has a value for it.
func draw(r *report.Report, p report.Plot) string {
	if p.X != "" {
		return curves(r, p).SVG()
	}
	return bars(r, p).SVG()
}

// heading finds what a column is called and in what unit its numbers are.
func heading(r *report.Report, field string) (string, report.Unit) {
	for _, row := range r.Rows {
		if f, ok := row.Field(field); ok {
			return f.Heading(), f.Unit
		}
	}
	return field, report.None
}

func bars(r *report.Report, p report.Plot) chart.Bars {
	b := chart.Bars{Title: p.Title, X: report.None.Format}
	for i, s := range p.Series {
		name, unit := heading(r, s.Field)
		if i == 0 {
			b.X = unit.Format
		}
		if s.Name != "" {
			name = s.Name
		}
		b.Names = append(b.Names, name)
	}
	labels := r.Labels()
	for i, row := range r.Rows {
		g := chart.Group{Label: labels[i]}
		some := false
		for _, s := range p.Series {
			v, ok := number(row, s.Field)
			some = some || ok
			if !ok {
				g.Values = append(g.Values, nil)
				continue
			}
			g.Values = append(g.Values, &v)
		}
		if some {
			b.Groups = append(b.Groups, g)
		}
	}
	return b
}

// number is the middle of a field with its quartiles.
func number(row report.Row, field string) (chart.Value, bool) {
	f, ok := row.Field(field)
	if !ok {
		return chart.Value{}, false
	}
	s, ok := f.Numeric()
	return chart.Value{Y: s.Median, Low: s.Q1, High: s.Q3}, ok
}

func curves(r *report.Report, p report.Plot) chart.Curves {
	name, unit := heading(r, p.X)
	k := chart.Curves{Title: p.Title, XName: name, X: unit.Format, Y: report.None.Format}
	for i, s := range p.Series {
		name, unit := heading(r, s.Field)
		if i == 0 {
			k.Y = unit.Format
		}
		if s.Name != "" {
			name = s.Name
		}
		c := chart.Curve{Name: name, Reference: s.Reference}
		for _, row := range r.Rows {
			x, known := number(row, p.X)
			v, ok := number(row, s.Field)
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
