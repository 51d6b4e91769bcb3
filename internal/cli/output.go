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

// output is the -o flag of a listing.
type output struct {
	format string
	// wide: the listing also has a table with more columns.
	wide bool
	// document: what is printed is a document, which has no table.
	document bool
}

// formats returns the values that -o accepts.
func (o *output) formats() []string {
	switch {
	case o.document:
		return []string{"yaml", "json"}
	case o.wide:
		return []string{"table", "wide", "json", "yaml"}
	}
	return []string{"table", "json", "yaml"}
}

func (o *output) flag(c *cobra.Command) {
	c.Flags().StringVarP(&o.format, "output", "o", o.formats()[0], "output format: "+anyOf(o.formats()))
	_ = c.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return o.formats(), cobra.ShellCompDirectiveNoFileComp
	})
}

// anyOf returns words as a choice: "table, json or yaml".
func anyOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (o *output) check() error {
	if slices.Contains(o.formats(), o.format) {
		return nil
	}
	return usagef("output format %q: use %s", o.format, anyOf(o.formats()))
}

// print writes v as JSON or YAML, or calls table.
func (o *output) print(d Deps, v any, table func(w io.Writer) error) error {
	if o.format == "table" || o.format == "wide" {
		return table(d.Stdout)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if o.format == "yaml" {
		if b, err = yamltext.FromJSON(b); err != nil {
			return err
		}
		_, err = d.Stdout.Write(b)
		return err
	}
	_, err = fmt.Fprintf(d.Stdout, "%s\n", b)
	return err
}

// tableWidth is the largest width of wrapped text, leastWidth that to which it is wrapped on a terminal that is
// narrower.
const (
	tableWidth = 100
	leastWidth = 40
)

// textWidth is how wide wrapped text may be: as the terminal is, within reason.
func (d Deps) textWidth() int {
	if d.Width <= 0 {
		return tableWidth
	}
	return min(max(d.Width, leastWidth), tableWidth)
}

// minColumn is the least width to which a long column is shortened, in characters.
const minColumn = 8

// screen is the output of a command. It has the terminal's width, 0 if it is not a terminal.
type screen struct {
	io.Writer
	width int
}

// roomOn returns how wide a table may be on w, in characters. 0 means without limit: a pipe or a file gets every text
// in full.
func roomOn(w io.Writer) int {
	if s, ok := w.(screen); ok {
		return s.width
	}
	return 0
}

// table is rows of text under headings, as wide as they need to be and at most as wide as the terminal.
type table struct {
	head []string
	rows [][]string
	// right aligns the columns of these indexes to the right.
	right map[int]bool
	// keep never shortens the columns of these indexes.
	keep map[int]bool
	// names are the indexes of columns that are shortened only if shortening the others is not enough.
	names map[int]bool
	// least is the least width of columns, by index; the default is minColumn.
	least map[int]int
	// narrow are ways to make the table narrower, which are applied in order while it is wider than the terminal. Names
	// are shortened only after them.
	narrow []func(*table)
	// hidden are columns that are left out.
	hidden map[int]bool
	// paint may colour a cell after it has been padded.
	paint func(col int, text, padded string) string
	// paintRow does the same, and also gets the index of the row, from 0.
	paintRow func(row, col int, text, padded string) string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	widths := t.widths(roomOn(w))
	lines := append([][]string{t.head}, t.rows...)
	for i, cells := range lines {
		var b strings.Builder
		for c, text := range cells {
			if t.hidden[c] {
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

func (t *table) cell(line, col int, text string, width int) string {
	text = shorten(printable.Text(text), width)
	pad := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	padded := text + pad
	if t.right[col] {
		padded = pad + text
	}
	switch {
	case line > 0 && t.paint != nil:
		return t.paint(col, text, padded)
	case line > 0 && t.paintRow != nil:
		return t.paintRow(line-1, col, text, padded)
	}
	return padded
}

// widths gives each column the width it needs, then makes the table narrower, and then takes from the widest column
// until all fit into room; 0 means without limit.
func (t *table) widths(room int) []int {
	w, total := t.needed()
	for _, step := range t.narrow {
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
func (t *table) needed() (w []int, total int) {
	w = make([]int, len(t.head))
	total = -2
	for c := range t.head {
		if t.hidden[c] {
			continue
		}
		w[c] = utf8.RuneCountInString(t.head[c])
		for _, r := range t.rows {
			w[c] = max(w[c], utf8.RuneCountInString(printable.Text(r[c])))
		}
		total += w[c] + 2
	}
	return w, total
}

// spare returns how much narrower the columns could be without shortening a name.
func (t *table) spare(w []int) (n int) {
	for c := range w {
		if !t.names[c] && !t.keep[c] && !t.hidden[c] {
			n += max(0, w[c]-t.leastOf(c))
		}
	}
	return n
}

func (t *table) leastOf(c int) int { return max(minColumn, t.least[c]) }

// widest returns the widest column that may still be shortened, of those with names or of the others; -1 for none.
func (t *table) widest(w []int, names bool) int {
	widest := -1
	for c := range w {
		if t.names[c] == names && !t.keep[c] && !t.hidden[c] && w[c] > t.leastOf(c) &&
			(widest < 0 || w[c] > w[widest]) {
			widest = c
		}
	}
	return widest
}

// leaveOut returns a way to make a table narrower: without the column with that heading.
func leaveOut(heading string) func(*table) {
	return func(t *table) {
		if t.hidden == nil {
			t.hidden = map[int]bool{}
		}
		t.hidden[slices.Index(t.head, heading)] = true
	}
}

// leaveOutTheOnly does the same if all rows have the same text in that column.
func leaveOutTheOnly(heading string) func(*table) {
	return func(t *table) {
		c := slices.Index(t.head, heading)
		if !slices.ContainsFunc(t.rows, func(r []string) bool { return r[c] != t.rows[0][c] }) {
			leaveOut(heading)(t)
		}
	}
}

// shorten cuts a text to width characters, the last of which is then an ellipsis.
func shorten(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	r := []rune(s)
	return string(r[:max(width-1, 0)]) + "…"
}

// Colours of a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

func (d Deps) coloured(code, text string) string {
	if !d.Colour || code == "" || text == "" {
		return text
	}
	if d.mark == "" {
		return code + text + plain
	}
	return printable.Sequence(d.mark, code) + text + printable.Sequence(d.mark, plain)
}

func stateColour(state string) string {
	switch state {
	case "up":
		return green
	case "down":
		return red
	case "blocked", "drained", "pending", "out", "degraded", "single":
		return yellow
	}
	return ""
}

// properties prints name: value lines, the values in one column.
func properties(w io.Writer, pairs [][2]string) error {
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

// columns returns the indexes of the columns with these headings.
func columns(head []string, named ...string) map[int]bool {
	at := map[int]bool{}
	for i, h := range head {
		at[i] = slices.Contains(named, h)
	}
	return at
}

// dash returns "-" for an empty text in a table.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
