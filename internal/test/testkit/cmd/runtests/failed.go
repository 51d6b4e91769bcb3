package main

import (
	"fmt"
	"regexp"
	"strings"
)

// failure is a failed test, or a package that failed outside its tests, and why.
type failure struct {
	pkg, test string
	logged    []string
}

// Of a failed test the section shows so many of the lines that it logged, the first and the last: those say what went
// wrong, these how it ended. A line that is a whole frame or table is cut. The section ends where a screen does.
const (
	linesOfATest  = 5
	longestLine   = 300
	linesOfFailed = 40
)

// logged matches the lines that say why a test failed: what it logged ("    file_test.go:12: text"), at any depth, so
// that what a test logs of another test program's lines counts too; and how Go tells of a panic or of a test that is
// late.
var logged = regexp.MustCompile(`^\s+\S+\.go:\d+: .|^(panic|fatal error|signal): `)

// anyWord matches every line that is not empty.
var anyWord = regexp.MustCompile(`\S`)

// failures lists the package's failed tests with what they logged. A package that failed without one, because it was
// not built or its TestMain failed, is listed by itself with the compiler's words or its own.
func (p *pkg) failures(name string, build *strings.Builder) []failure {
	var list []failure
	for _, test := range p.order {
		if t := p.tests[test]; t.verdict == "fail" && t.counts(test) {
			list = append(list, failure{name, test, matching(t.output.String(), logged)})
		}
	}
	if list != nil {
		return list
	}
	said := ""
	if build != nil {
		said = build.String()
	}
	if own := p.tests[""]; own != nil {
		said += verdictLine.ReplaceAllString(own.output.String(), "")
	}
	return []failure{{name, "", matching(said, anyWord)}}
}

// matching returns the lines of a text that match, without the space around them and cut where they are too long.
func matching(text string, re *regexp.Regexp) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if re.MatchString(line) {
			lines = append(lines, cut(strings.TrimSpace(line)))
		}
	}
	return lines
}

// cut shortens a line that is too long.
func cut(line string) string {
	if r := []rune(line); len(r) > longestLine {
		return string(r[:longestLine-1]) + "…"
	}
	return line
}

// lines shows the failure with at most n of the lines that it logged: the first ones, and the last ones.
func (f failure) lines(n int) []string {
	show := []string{"  " + strings.TrimSpace(f.pkg+"  "+f.test)}
	first, last := min((n+1)/2, len(f.logged)), n/2
	for _, l := range f.logged[:first] {
		show = append(show, "      "+l)
	}
	rest := f.logged[first:]
	from := max(0, len(rest)-last)
	for i, l := range rest[from:] {
		mark := "      "
		if i == 0 && from > 0 {
			mark = "    … "
		}
		show = append(show, mark+l)
	}
	return show
}

// printFailures lists the failed tests once more, so that who sees only the end of a long log knows what failed and
// why. With many failed tests it shows less of each.
func (r *report) printFailures() {
	if len(r.failures) == 0 {
		return
	}
	var show []string
	for n := linesOfATest; n >= 0; n-- {
		show = []string{"failed:"}
		for _, f := range r.failures {
			show = append(show, f.lines(n)...)
		}
		if len(show) <= linesOfFailed {
			break
		}
	}
	if left := len(show) - (linesOfFailed - 1); left > 1 { // by now a line is a test
		show = append(show[:linesOfFailed-1], fmt.Sprintf("  … and %d more", left))
	}
	fmt.Fprintf(r.out, "\n%s\n", strings.Join(show, "\n"))
}
