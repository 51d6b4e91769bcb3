package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	tableWidth  = 100 // assumed width of a terminal, in columns
	notMeasured = "–"
	columnGap   = "  "
)

// grid is a table as text: the first line is the heading.
type grid [][]string

func (r *Report) writeTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Name)
	for _, line := range wrap(r.Environment.String(), tableWidth-2) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if g := r.grid(); len(g) > 1 {
		b.WriteByte('\n')
		g.write(&b)
	}
	if len(r.Budgets) > 0 {
		b.WriteByte('\n')
		budgetGrid(r.Budgets).write(&b)
	}
	for i, note := range slices.Concat(r.Conclusions, r.Notes) {
		if i == 0 {
			b.WriteByte('\n')
		}
		for _, line := range wrap(note, tableWidth) {
			fmt.Fprintln(&b, line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Grid returns the report's table as text: a line of headings, and one for each row.
func (r *Report) Grid() [][]string { return r.grid() }

// grid collects the columns of all rows, in the order they first appear.
func (r *Report) grid() grid {
	column := map[string]int{}
	g := grid{nil}
	for _, row := range r.Rows {
		for _, f := range row {
			if _, known := column[f.Name]; !known && !f.Hidden {
				column[f.Name] = len(column)
				g[0] = append(g[0], f.Heading())
			}
		}
	}
	for _, row := range r.Rows {
		line := make([]string, len(column))
		for i := range line {
			line[i] = notMeasured
		}
		for _, f := range row {
			if i, shown := column[f.Name]; shown && !f.Hidden {
				line[i] = f.Text()
			}
		}
		g = append(g, line)
	}
	return g.measured()
}

// measured returns the grid without the columns in which no row has a measured value.
func (g grid) measured() grid {
	var keep []int
	for i := range g[0] {
		if i == 0 || len(g) == 1 || slices.ContainsFunc(g[1:], func(line []string) bool {
			return line[i] != notMeasured
		}) {
			keep = append(keep, i)
		}
	}
	out := make(grid, len(g))
	for n, line := range g {
		for _, i := range keep {
			out[n] = append(out[n], line[i])
		}
	}
	return out
}

// Heading returns the heading of the field's column.
func (f Field) Heading() string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// Text returns the field's value for people; a spread shows its median and, in brackets, its quartiles.
func (f Field) Text() string {
	switch v := f.plain().(type) {
	case nil:
		return notMeasured
	case Spread:
		if f.Brief {
			return f.Unit.Format(v.Median)
		}
		return f.Unit.formatSpread(v)
	case float64:
		return f.Unit.Format(v)
	case int:
		return f.Unit.Format(float64(v))
	case int64:
		return f.Unit.Format(float64(v))
	case uint64:
		return f.Unit.Format(float64(v))
	case bool:
		if v {
			return "yes"
		}
		return "no"
	default:
		return fmt.Sprint(v)
	}
}

// formatSpread leaves out the unit in the brackets if the three numbers share it.
func (u Unit) formatSpread(s Spread) string {
	median, q1, q3 := u.Format(s.Median), u.Format(s.Q1), u.Format(s.Q3)
	_, unit, _ := strings.Cut(median, " ")
	if a, ua, _ := strings.Cut(q1, " "); ua == unit {
		if b, ub, _ := strings.Cut(q3, " "); ub == unit {
			q1, q3 = a, b
		}
	}
	return fmt.Sprintf("%s (%s–%s)", median, q1, q3)
}

func budgetGrid(budgets []Budget) grid {
	g := grid{{"budget", "value", "wanted", "met"}}
	for _, b := range budgets {
		g = append(g, []string{b.Name, b.Shown(), b.Wanted(), b.Verdict()})
	}
	return g
}

// Wanted returns the budget for people, such as "≥ 0.950".
func (b Budget) Wanted() string {
	sign := map[Bound]string{AtLeast: "≥ ", AtMost: "≤ ", Exactly: "= "}[b.Bound]
	return sign + b.Unit.Format(b.Budget)
}

// write writes the grid in columns. Columns that do not fit beside each other continue in a second block below, which
// repeats the first column, so that no line is wider than a terminal.
func (g grid) write(b *strings.Builder) {
	widths := make([]int, len(g[0]))
	for _, line := range g {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for from := 1; ; {
		to, used := from, widths[0]
		for to < len(widths) && (to == from || used+len(columnGap)+widths[to] <= tableWidth) {
			used += len(columnGap) + widths[to]
			to++
		}
		if from > 1 {
			b.WriteByte('\n')
		}
		g.writeBlock(b, widths, from, to)
		if from = to; from >= len(widths) {
			return
		}
	}
}

func (g grid) writeBlock(b *strings.Builder, widths []int, from, to int) {
	for _, line := range g {
		text := pad(line[0], widths[0])
		for i := from; i < to; i++ {
			text += columnGap + pad(line[i], widths[i])
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// wrap breaks a text at spaces into lines of at most width runes; a longer word gets its own line.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
