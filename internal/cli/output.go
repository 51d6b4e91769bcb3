package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"heddle/internal/spec/printable"
	"heddle/internal/spec/yamltext"
)

// Output is the -o flag of a listing.
type Output struct {
	Format string
	// Wide: the listing also has a table with more columns.
	Wide bool
	// Document: what is printed is a document, which has no table.
	Document bool
}

// formats returns the values that -o accepts.
func (o *Output) formats() []string {
	switch {
	case o.Document:
		return []string{"yaml", "json"}
	case o.Wide:
		return []string{"table", "wide", "json", "yaml"}
	}
	return []string{"table", "json", "yaml"}
}

func (o *Output) Flag(c *cobra.Command) {
	c.Flags().StringVarP(&o.Format, "output", "o", o.formats()[0], "output format: "+AnyOf(o.formats()))
	_ = c.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return o.formats(), cobra.ShellCompDirectiveNoFileComp
	})
}

// AnyOf returns words as a choice: "table, json or yaml".
func AnyOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (o *Output) Check() error {
	if slices.Contains(o.formats(), o.Format) {
		return nil
	}
	return Usagef("output format %q: use %s", o.Format, AnyOf(o.formats()))
}

// Print writes v as JSON or YAML, or calls table.
func (o *Output) Print(d Deps, v any, table func(w io.Writer) error) error {
	if o.Format == "table" || o.Format == "wide" {
		return table(d.Stdout)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if o.Format == "yaml" {
		if b, err = yamltext.FromJSON(b); err != nil {
			return err
		}
		_, err = d.Stdout.Write(b)
		return err
	}
	_, err = fmt.Fprintf(d.Stdout, "%s\n", b)
	return err
}

// TableWidth is the largest width of wrapped text, leastWidth that to which it is wrapped on a terminal that is
// narrower.
const (
	TableWidth = 100
	leastWidth = 40
)

// TextWidth is how wide wrapped text may be: as the terminal is, within reason.
func (d Deps) TextWidth() int {
	if d.Width <= 0 {
		return TableWidth
	}
	return min(max(d.Width, leastWidth), TableWidth)
}

// minColumn is the least width to which a long column is shortened, in characters.
const minColumn = 8

// screen is the output of a command. It has the terminal's width, 0 if it is not a terminal.
type screen struct {
	io.Writer
	width int
}

// NewScreen is a terminal of that width, in characters, to which a command writes; 0 for what is no terminal.
func NewScreen(w io.Writer, width int) io.Writer { return screen{w, width} }

// roomOn returns how wide a table may be on w, in characters. 0 means without limit: a pipe or a file gets every text
// in full.
func roomOn(w io.Writer) int {
	if s, ok := w.(screen); ok {
		return s.width
	}
	return 0
}

// Table is rows of text under headings, as wide as they need to be and at most as wide as the terminal.
type Table struct {
	Head []string
	Rows [][]string
	// Right aligns the columns of these indexes to the right.
	Right map[int]bool
	// Keep never shortens the columns of these indexes.
	Keep map[int]bool
	// Names are the indexes of columns that are shortened only if shortening the others is not enough.
	Names map[int]bool
	// Least is the least width of columns, by index; the default is minColumn.
	Least map[int]int
	// Narrow are ways to make the table narrower, which are applied in order while it is wider than the terminal. Names
	// are shortened only after them.
	Narrow []func(*Table)
	// Hidden are columns that are left out.
	Hidden map[int]bool
	// Paint may colour a cell after it has been padded.
	Paint func(col int, text, padded string) string
	// PaintRow does the same, and also gets the index of the row, from 0.
	PaintRow func(row, col int, text, padded string) string
}

func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

func (t *Table) Write(w io.Writer) error {
	widths := t.widths(roomOn(w))
	lines := append([][]string{t.Head}, t.Rows...)
	for i, cells := range lines {
		var b strings.Builder
		for c, text := range cells {
			if t.Hidden[c] {
				continue
			}
			if b.Len() > 0 {
				b.WriteString("  ")
			}
			b.WriteString(t.cell(i, c, text, widths[c]))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) cell(line, col int, text string, width int) string {
	text = Shorten(printable.Text(text), width)
	pad := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	padded := text + pad
	if t.Right[col] {
		padded = pad + text
	}
	switch {
	case line > 0 && t.Paint != nil:
		return t.Paint(col, text, padded)
	case line > 0 && t.PaintRow != nil:
		return t.PaintRow(line-1, col, text, padded)
	}
	return padded
}

// widths gives each column the width it needs, then makes the table narrower, and then takes from the widest column
// until all fit into room; 0 means without limit.
func (t *Table) widths(room int) []int {
	w, total := t.needed()
	for _, step := range t.Narrow {
		if room == 0 || total-t.spare(w) <= room {
			break
		}
		step(t)
		w, total = t.needed()
	}
	for ; room > 0 && total > room; total-- {
		widest := t.widest(w, false)
		if widest < 0 {
			widest = t.widest(w, true)
		}
		if widest < 0 {
			break
		}
		w[widest]--
	}
	return w
}

// needed returns the width of each column, and the sum of those that are shown.
func (t *Table) needed() (w []int, total int) {
	w = make([]int, len(t.Head))
	total = -2
	for c := range t.Head {
		if t.Hidden[c] {
			continue
		}
		w[c] = utf8.RuneCountInString(t.Head[c])
		for _, r := range t.Rows {
			w[c] = max(w[c], utf8.RuneCountInString(printable.Text(r[c])))
		}
		total += w[c] + 2
	}
	return w, total
}

// spare returns how much narrower the columns could be without shortening a name.
func (t *Table) spare(w []int) (n int) {
	for c := range w {
		if !t.Names[c] && !t.Keep[c] && !t.Hidden[c] {
			n += max(0, w[c]-t.leastOf(c))
		}
	}
	return n
}

func (t *Table) leastOf(c int) int { return max(minColumn, t.Least[c]) }

// widest returns the widest column that may still be shortened, of those with names or of the others; -1 for none.
func (t *Table) widest(w []int, names bool) int {
	widest := -1
	for c := range w {
		if t.Names[c] == names && !t.Keep[c] && !t.Hidden[c] && w[c] > t.leastOf(c) &&
			(widest < 0 || w[c] > w[widest]) {
			widest = c
		}
	}
	return widest
}

// Shorten cuts a text to width characters, the last of which is then an ellipsis.
func Shorten(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	r := []rune(s)
	return string(r[:max(width-1, 0)]) + "…"
}

// Colours of a terminal.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Plain  = "\x1b[0m"
)

func (d Deps) Coloured(code, text string) string {
	if !d.Colour || code == "" || text == "" {
		return text
	}
	if d.Mark == "" {
		return code + text + Plain
	}
	return printable.Sequence(d.Mark, code) + text + printable.Sequence(d.Mark, Plain)
}

func StateColour(state string) string {
	switch state {
	case "up":
		return Green
	case "down":
		return Red
	case "blocked", "drained", "pending", "out", "degraded", "single":
		return Yellow
	}
	return ""
}

// Properties prints name: value lines, the values in one column.
func Properties(w io.Writer, pairs [][2]string) error {
	width := 0
	for _, p := range pairs {
		width = max(width, len(p[0]))
	}
	for _, p := range pairs {
		if p[1] == "" {
			p[1] = "-"
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width+1, p[0]+":", p[1]); err != nil {
			return err
		}
	}
	return nil
}

// Dash returns "-" for an empty text in a table.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
