// Package page writes a report as one HTML file that needs nothing else: what was done and where, pictures, tables with
// their spread, budgets. It has no script and refers to nothing outside, so that it can be mailed, archived and
// printed.
package page

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"heddle/internal/lab/report"
)

//go:embed page.css
var style string

// Write writes the report as an HTML page that is well-formed XML too. command is what was run, for the reader who
// wants to run it again; may be empty.
func Write(w io.Writer, r *report.Report, command string) error {
	d := &document{}
	title := r.Name
	if r.Title != "" {
		title += ": " + r.Title
	}
	d.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	d.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" " +
		"content=\"light dark\"/>\n")
	d.element("title", "", title)
	d.raw("\n<style>\n" + style + "</style>\n</head>\n<body>\n<main>\n")
	d.heading(r, command)
	d.results(r)
	d.pictures(r)
	d.budgets(r.Budgets)
	d.notes(r.Notes)
	d.environment(r.Environment)
	d.spreads(r)
	d.raw("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

// heading says what it is, when it was measured and how it came out.
func (d *document) heading(r *report.Report, command string) {
	d.element("h1", "", r.Name)
	if r.Title != "" {
		d.element("p", "title", r.Title)
	}
	d.raw("<p class=\"when\">Measured ")
	d.element("time", "", r.Environment.Date.Format("2006-01-02 15:04 MST"))
	if command != "" {
		d.raw(" by ")
		d.element("code", "", command)
	}
	missed := 0
	for _, b := range r.Budgets {
		if !b.Met {
			missed++
		}
	}
	switch {
	case len(r.Budgets) == 0:
	case missed > 0:
		d.raw(" · ")
		d.element("strong", "missed", fmt.Sprintf("%d of %d budgets missed", missed, len(r.Budgets)))
	default:
		d.raw(" · ")
		d.element("strong", "met", fmt.Sprintf("%d of %d budgets met", len(r.Budgets), len(r.Budgets)))
	}
	d.raw("</p>\n")
}

func (d *document) results(r *report.Report) {
	if len(r.Rows) == 0 {
		return
	}
	grid := r.Grid()
	d.section("Results", func() { d.table(grid[0], grid[1:], nil) })
}

func (d *document) pictures(r *report.Report) {
	var svgs, titles []string
	for _, p := range r.Drawn() {
		if svg := draw(r, p); svg != "" {
			svgs, titles = append(svgs, svg), append(titles, p.Title)
		}
	}
	if len(svgs) == 0 {
		return
	}
	d.section("Pictures", func() {
		d.element("p", "small", "The middle of all rounds; the thin lines reach from the first to the third quartile.")
		for i, svg := range svgs {
			d.raw("<figure>\n")
			d.element("figcaption", "", titles[i])
			d.raw("\n" + svg + "</figure>\n")
		}
	})
}

func (d *document) budgets(budgets []report.Budget) {
	if len(budgets) == 0 {
		return
	}
	var rows [][]string
	for _, b := range budgets {
		rows = append(rows, []string{b.Name, b.Unit.Format(b.Value), b.Wanted(), b.Verdict()})
	}
	class := func(row, column int) string {
		switch {
		case column != 3:
			return ""
		case budgets[row].Met:
			return "met"
		}
		return "missed"
	}
	d.section("Budgets", func() { d.table([]string{"budget", "value", "wanted", "met"}, rows, class) })
}

func (d *document) notes(notes []string) {
	if len(notes) == 0 {
		return
	}
	d.section("What was done, and what it shows", func() {
		for _, n := range notes {
			d.element("p", "", n)
			d.raw("\n")
		}
	})
}

// environment lists what is known of where it was measured.
func (d *document) environment(e report.Environment) {
	d.section("Where", func() {
		d.raw("<dl>\n")
		for _, x := range [][2]string{
			{"System", strings.TrimSpace(e.OS + " " + e.Kernel + " " + e.Arch)},
			{"Processors", strings.TrimSpace(fmt.Sprintf("%d %s", e.CPUs, e.CPUModel))},
			{"Mitigations", strings.Join(e.Mitigations, ", ")},
			{"Load before", e.Load},
			{"Heddle", strings.TrimSpace(e.Heddle + " " + e.Commit)},
			{"Go", e.Go},
		} {
			if x[1] != "" {
				d.element("dt", "", x[0])
				d.element("dd", "", x[1])
				d.raw("\n")
			}
		}
		d.raw("</dl>\n")
	})
}

// spreads are those of all rows with everything that is known of them, also what the table leaves out.
func (d *document) spreads(r *report.Report) {
	labels := r.Labels()
	var rows [][]string
	for i, row := range r.Rows {
		for _, f := range row {
			s, ok := f.Numeric()
			if _, spread := f.Value.(report.Spread); !spread || !ok {
				continue
			}
			rows = append(rows, []string{
				labels[i], f.Name, f.Unit.Format(s.Median), f.Unit.Format(s.Q1), f.Unit.Format(s.Q3),
				f.Unit.Format(s.Min), f.Unit.Format(s.Max), fmt.Sprint(s.Rounds),
			})
		}
	}
	if len(rows) == 0 {
		return
	}
	d.section("Every spread", func() {
		d.raw("<details>\n")
		d.element("summary", "", "median, quartiles, least and most of the rounds")
		d.table([]string{"row", "value", "median", "first quartile", "third quartile", "least", "most", "rounds"}, rows,
			nil)
		d.raw("</details>\n")
	})
}
