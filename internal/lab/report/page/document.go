package page

import (
	"strings"

	"heddle/internal/lab/report/chart"
)

// document collects a page. Every text of a report goes through element or table, which escape it; raw is for markup of
// this package alone. (The library's templates would do the same, but would add 4.6 MB to the program that switches
// frames.)
type document struct{ strings.Builder }

func (d *document) raw(markup string) { d.WriteString(markup) }

// element writes a text in an element; class may be empty.
func (d *document) element(name, class, text string) {
	d.raw("<" + name)
	if class != "" {
		d.raw(` class="` + class + `"`)
	}
	d.raw(">" + chart.Escape(text) + "</" + name + ">")
}

func (d *document) section(heading string, inside func()) {
	d.raw("<section>\n")
	d.element("h2", "", heading)
	d.raw("\n")
	inside()
	d.raw("</section>\n")
}

// table writes rows under a heading; the first cell of a row names it. class returns the class of a cell; the heading
// of a column of "words" has that class too; nil for no classes. A table that is wider than its page can be scrolled,
// and shows that at its edges.
func (d *document) table(head []string, rows [][]string, class func(row, column int) string) {
	of := func(row, column int) string {
		if class == nil {
			return ""
		}
		return class(row, column)
	}
	d.raw("<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>")
	for j, h := range head {
		heading := ""
		if len(rows) > 0 && of(0, j) == "words" {
			heading = "words"
		}
		d.element("th", heading, h)
	}
	d.raw("</tr></thead>\n<tbody>\n")
	for i, row := range rows {
		d.raw("<tr>")
		for j, cell := range row {
			name := "td"
			if j == 0 {
				name = "th"
			}
			d.cell(name, of(i, j), cell)
		}
		d.raw("</tr>\n")
	}
	d.raw("</tbody>\n</table></div>\n")
}

// cell writes one cell. A spread in brackets may be wrapped below its median, and is smaller.
func (d *document) cell(name, class, text string) {
	median, rest, spread := strings.Cut(text, " (")
	if !spread || class != "" || !strings.HasSuffix(rest, ")") || !strings.Contains(rest, "–") {
		d.element(name, class, text)
		return
	}
	d.raw("<" + name + ">" + chart.Escape(median) + ` <span class="spread">(` + chart.Escape(rest) + "</span></" + name + ">")
}
