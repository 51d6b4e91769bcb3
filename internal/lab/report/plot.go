package report

import (
	"math"
	"strings"
)

// Plot says which columns of a report make one picture, and how. The numbers stay in the rows; a plot only names them.
type Plot struct {
	Title string
	// X is the numeric field for a logarithmic x axis, with a curve for each of Series. Empty: bars, a group for each
	// row and in it a bar for each of Series.
	X string
	// Series are the columns shown.
	Series []Series
	// Unit is the unit of all values in the picture; values in another unit are left out. Empty: the unit of the first
	// value.
	Unit Unit
}

// Series is one column in a plot.
type Series struct {
	// Name is the text in the legend; empty: the column's heading.
	Name string
	// Field is the column's key.
	Field string
	// Reference draws the column as a reference to compare with: figures that others have published.
	Reference bool
}

// Numeric returns a field's value as a spread; a single number is a spread without width. ok is false if the value is
// not a number or was not measured.
func (f Field) Numeric() (s Spread, ok bool) {
	switch v := f.plain().(type) {
	case Spread:
		return v, true
	case float64:
		return single(v), true
	case int:
		return single(float64(v)), true
	case int64:
		return single(float64(v)), true
	case uint64:
		return single(float64(v)), true
	}
	return Spread{}, false
}

func single(v float64) Spread {
	return Spread{Median: v, Q1: v, Q3: v, Min: v, Max: v, Rounds: 1}
}

// Field returns a field of the row by its key.
func (r Row) Field(name string) (Field, bool) {
	for _, f := range r {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Labels returns names for the rows of a report, one text each: as few of a row's leading texts as are needed to
// distinguish the rows.
func (r *Report) Labels() []string {
	texts := make([][]string, len(r.Rows))
	longest := 0
	for i, row := range r.Rows {
		texts[i] = row.leading()
		longest = max(longest, len(texts[i]))
	}
	for words := 1; ; words++ {
		labels := make([]string, len(texts))
		seen := map[string]bool{}
		for i, t := range texts {
			labels[i] = strings.Join(t[:min(words, len(t))], " ")
			seen[labels[i]] = true
		}
		if len(seen) == len(labels) || words >= longest {
			return labels
		}
	}
}

// leading returns the row's first visible columns, up to the first that is not a text; a number in the first column
// counts as well.
func (r Row) leading() []string {
	var texts []string
	for _, f := range r {
		if f.Hidden {
			continue
		}
		if _, isText := f.Value.(string); !isText {
			if len(texts) == 0 {
				texts = append(texts, f.Text())
			}
			break
		}
		texts = append(texts, f.Text())
	}
	return texts
}

// Drawn returns the plots of the report: its own, or else bars of every column with spreads or with rates and
// durations.
func (r *Report) Drawn() []Plot {
	if r.Plots != nil {
		return r.Plots
	}
	type picture struct {
		field string
		unit  Unit
	}
	var all []Plot
	seen, units := map[picture]bool{}, map[string]int{}
	for _, row := range r.Rows {
		for _, f := range row {
			p := picture{f.Name, f.Unit}
			if seen[p] || f.Hidden || !worthDrawing(f) {
				continue
			}
			seen[p] = true
			units[f.Name]++
			all = append(all, Plot{Title: f.Heading(), Series: []Series{{Field: f.Name}}, Unit: f.Unit})
		}
	}
	for i, p := range all {
		if units[p.Series[0].Field] > 1 {
			all[i].Title += ", " + string(p.Unit)
		}
	}
	return all
}

// worthDrawing reports whether a field is drawn: counts are clearer as numbers.
func worthDrawing(f Field) bool {
	s, ok := f.Numeric()
	if !ok || math.IsNaN(s.Median) {
		return false
	}
	if _, spread := f.Value.(Spread); spread {
		return true
	}
	switch f.Unit {
	case BitsPerSecond, PacketsPerSecond, PerSecond, Seconds, SecondsPerGB, Ratio:
		return true
	}
	return false
}
