package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"heddle/internal/spec/printable"
)

// output is the -o flag of a listing.
type output struct{ format string }

func (o *output) flag(c *cobra.Command) {
	c.Flags().StringVarP(&o.format, "output", "o", "table", "output format: table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp
	})
}

func (o *output) check() error {
	switch o.format {
	case "table", "json", "yaml":
		return nil
	}
	return usagef("output format %q: use table, json or yaml", o.format)
}

// print writes v as JSON or YAML, or calls table.
func (o *output) print(d Deps, v any, table func(w io.Writer) error) error {
	if o.format == "table" {
		return table(d.Stdout)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if o.format == "yaml" {
		if b, err = toYAML(b); err != nil {
			return err
		}
		_, err = d.Stdout.Write(b)
		return err
	}
	_, err = fmt.Fprintf(d.Stdout, "%s\n", b)
	return err
}

// tableWidth is the largest width of a table.
const tableWidth = 100

// minColumn is how narrow a long column may be made.
const minColumn = 8

// table is rows of text under a heading, as wide as they need to be and at most tableWidth.
type table struct {
	head []string
	rows [][]string
	// right aligns the columns of these indexes to the right.
	right map[int]bool
	// keep never shortens the columns of these indexes.
	keep map[int]bool
	// paint may colour a cell after it has been padded.
	paint func(col int, text, padded string) string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	widths := t.widths()
	lines := append([][]string{t.head}, t.rows...)
	for i, cells := range lines {
		var b strings.Builder
		for c, text := range cells {
			if c > 0 {
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
	if t.paint != nil && line > 0 {
		return t.paint(col, text, padded)
	}
	return padded
}

// widths gives each column what it needs, then takes from the widest until all fit.
func (t *table) widths() []int {
	w := make([]int, len(t.head))
	total := 2 * (len(w) - 1)
	for c := range t.head {
		w[c] = utf8.RuneCountInString(t.head[c])
		for _, r := range t.rows {
			w[c] = max(w[c], utf8.RuneCountInString(printable.Text(r[c])))
		}
		total += w[c]
	}
	for ; total > tableWidth; total-- {
		widest := -1
		for c := range w {
			if !t.keep[c] && w[c] > minColumn && (widest < 0 || w[c] > w[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		w[widest]--
	}
	return w
}

// shorten cuts a text to width characters; the last one then is an ellipsis.
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
	if !d.Colour || code == "" {
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
	case "blocked", "pending", "out":
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

// dash stands for "nothing" in a table.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
