package page

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"unicode"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/chart"
)

//go:embed page.css
var style string

// Write writes the report as an HTML page that is also well-formed XML. command is the command that was run, for a
// reader who wants to repeat it; it may be empty. The results come first, the method last.
func Write(w io.Writer, r *report.Report, command string) error {
	d := &document{}
	d.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	d.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" " +
		"content=\"light dark\"/>\n")
	d.element("title", "", strings.TrimSuffix(title(r)+": "+about(r), ": "))
	d.raw("\n<style>\n" + style + "</style>\n</head>\n<body>\n<main>\n")
	d.heading(r, command)
	d.sentences("What it shows", r.Conclusions)
	d.matrices(r.Matrices)
	d.labs(r.Labs)
	d.timelines(r.Timelines)
	d.results(r)
	d.charts(r)
	d.budgets(r.Budgets)
	d.sentences(map[bool]string{true: "How it was calculated", false: "How it was measured"}[r.Simulated], r.Notes)
	d.environment(r.Environment)
	d.spreads(r)
	d.raw("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

// title returns a report's name in words: "nested-mac-learning (simulated)" is "Nested MAC learning".
func title(r *report.Report) string {
	words := strings.Fields(strings.ReplaceAll(strings.TrimSuffix(r.Name, " (simulated)"), "-", " "))
	for i, w := range words {
		switch w {
		case "mac", "vm", "ipfix", "lag":
			words[i] = strings.ToUpper(w)
		case "bench":
			words[i] = "benchmark:"
		}
	}
	text := []rune(strings.Join(words, " "))
	if len(text) > 0 {
		text[0] = unicode.ToUpper(text[0])
	}
	return string(text)
}

// about returns the subject of the report in a sentence, without the remark that lists of experiments have and a report
// does not need.
func about(r *report.Report) string { return strings.TrimSuffix(r.Title, " (real traffic only)") }

// heading writes the name of the report, when it was measured, and the result.
func (d *document) heading(r *report.Report, command string) {
	d.element("h1", "", title(r))
	if text := about(r); text != "" {
		d.element("p", "title", text)
	}
	d.raw("<p class=\"when\">" + map[bool]string{true: "Calculated", false: "Measured"}[r.Simulated] + " ")
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
	if r.Explained != "" {
		d.raw("<p class=\"when\">Explained in ")
		d.raw(`<a href="` + chart.Escape(docs+r.Explained) + `">` + chart.Escape(r.Explained) + "</a>")
		d.raw(" of Heddle's documentation</p>\n")
	}
}

// docs is where the package of Heddle puts the documentation.
const docs = "file:///usr/share/doc/heddle/docs/"

// labs writes the pictures of the labs.
func (d *document) labs(labs []report.Picture) {
	if len(labs) == 0 {
		return
	}
	d.section("The lab", func() {
		for _, p := range labs {
			d.figure(p.Title, p.SVG)
		}
	})
}

// figure writes a picture with its title. On a narrow screen it can be scrolled, because it would be unreadable if it
// were shrunk.
func (d *document) figure(title, svg string) {
	d.raw("<figure>\n")
	d.element("figcaption", "", title)
	d.raw("\n<div class=\"wide\" tabindex=\"0\">" + svg + "</div></figure>\n")
}

func (d *document) matrices(all []report.Matrix) {
	if len(all) == 0 {
		return
	}
	d.section("From each to each", func() {
		for _, m := range all {
			if svg := matrix(m).SVG(); svg != "" {
				d.figure(m.Title, svg)
			}
		}
	})
}

func (d *document) timelines(all []report.Timeline) {
	var svgs, titles []string
	for _, t := range all {
		if svg := timeline(t).SVG(); svg != "" {
			svgs, titles = append(svgs, svg), append(titles, t.Title)
		}
	}
	if len(svgs) == 0 {
		return
	}
	d.section("When packets came", func() {
		d.element("p", "small", "One round of each row: the one in the middle, by its longest silence. Packets "+
			"come where the bar is; the gap in it is that silence.")
		for i, svg := range svgs {
			d.figure(titles[i], svg)
		}
	})
}

func (d *document) results(r *report.Report) {
	if len(r.Rows) == 0 {
		return
	}
	grid := r.Grid()
	words := wordColumns(r, grid[0])
	d.section("Results", func() {
		d.table(grid[0], grid[1:], func(_, column int) string {
			if words[column] {
				return "words"
			}
			return ""
		})
	})
}

// wordColumns returns the columns that contain texts: they are left-aligned.
func wordColumns(r *report.Report, head []string) map[int]bool {
	texts := map[string]bool{}
	for _, row := range r.Rows {
		for _, f := range row {
			if _, isText := f.Value.(string); isText && !f.Hidden {
				texts[f.Heading()] = true
			}
		}
	}
	columns := map[int]bool{}
	for i, h := range head {
		columns[i] = texts[h]
	}
	return columns
}

func (d *document) charts(r *report.Report) {
	var svgs, titles []string
	for _, p := range r.Drawn() {
		if svg := draw(r, p); svg != "" {
			svgs, titles = append(svgs, svg), append(titles, p.Title)
		}
	}
	if len(svgs) == 0 {
		return
	}
	d.section("Charts", func() {
		if hasSpreads(r) {
			d.element("p", "small", "The middle of all rounds; the thin lines reach from the first to the third "+
				"quartile.")
		}
		for i, svg := range svgs {
			d.figure(titles[i], svg)
		}
	})
}

// hasSpreads reports whether something was measured in several rounds.
func hasSpreads(r *report.Report) bool {
	for _, row := range r.Rows {
		for _, f := range row {
			if s, ok := f.Value.(report.Spread); ok && s.Rounds > 1 {
				return true
			}
		}
	}
	return false
}

func (d *document) budgets(budgets []report.Budget) {
	if len(budgets) == 0 {
		return
	}
	var rows [][]string
	for _, b := range budgets {
		rows = append(rows, []string{b.Name, b.Shown(), b.Wanted(), b.Verdict()})
	}
	class := func(row, column int) string {
		switch {
		case column == 0:
			return "words"
		case column != 3:
			return ""
		case budgets[row].Met:
			return "met"
		}
		return "missed"
	}
	d.section("Budgets", func() { d.table([]string{"budget", "value", "wanted", "met"}, rows, class) })
}

func (d *document) sentences(heading string, all []string) {
	if len(all) == 0 {
		return
	}
	d.section(heading, func() {
		for _, n := range all {
			d.element("p", "", n)
			d.raw("\n")
		}
	})
}

// environment lists what is known about the machine of the measurement.
func (d *document) environment(e report.Environment) {
	d.section("Test system", func() {
		d.raw("<dl>\n")
		for _, x := range [][2]string{
			{"System", strings.TrimSpace(e.OS + " " + e.Kernel + " " + e.Arch)},
			{"Processors", processors(e)},
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

// processors are how many of which kind; "" where that is not known.
func processors(e report.Environment) string {
	if e.CPUs == 0 {
		return e.CPUModel
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", e.CPUs, e.CPUModel))
}

// spreads writes the spreads of all rows in full, including what the table leaves out.
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
			func(_, column int) string { return map[bool]string{true: "words", false: ""}[column < 2] })
		d.raw("</details>\n")
	})
}
