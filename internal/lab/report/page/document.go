package page

import (
	"strings"

	"heddle/internal/lab/report/chart"
)

// document collects a page. Whatever comes from a report goes through element or table, which escape it; raw is for
// markup of this package alone. (The library's templates would do it too, and cost the program that switches frames 4.6
// MB.)
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

// table writes rows under a heading; the first cell of a row names it. class, when set, gives the class of a cell.
func (d *document) table(head []string, rows [][]string, class func(row, column int) string) {
	d.raw("<div class=\"wide\"><table>\n<thead><tr>")
	for _, h := range head {
		d.element("th", "", h)
	}
	d.raw("</tr></thead>\n<tbody>\n")
	for i, row := range rows {
		d.raw("<tr>")
		for j, cell := range row {
			of := ""
			if class != nil {
				of = class(i, j)
			}
			if j == 0 {
				d.element("th", of, cell)
			} else {
				d.element("td", of, cell)
			}
		}
		d.raw("</tr>\n")
	}
	d.raw("</tbody>\n</table></div>\n")
}
