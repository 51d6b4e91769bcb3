package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// failure is a failed test, or a package that failed outside its tests, and why.
type failure struct {
	pkg, test string
	logged    []string
	never     bool
	seconds   float64
	load      float64
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
			list = append(list, failure{pkg: name, test: test, logged: matching(t.output.String(), logged),
				never: p.never(name, test), seconds: t.seconds, load: t.load})
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
	// What failed outside its tests, by what it leaves or because it was not built, fails again or hides something.
	return []failure{{pkg: name, logged: matching(said, anyWord), never: true}}
}

// never says whether a failed test is not repeated.
func (p *pkg) never(name, test string) bool {
	root, _, _ := strings.Cut(test, "/")
	for n, t := range p.tests {
		if of, _, _ := strings.Cut(n, "/"); of == root && t.never {
			return true
		}
	}
	return among(neverPackages, name)
}

// groups are the failures by what is repeated together: a test with its subtests, or a package that ended abruptly.
func (r *report) groups() []*group {
	for _, f := range r.failures {
		root, _, _ := strings.Cut(f.test, "/")
		if r.results[f.pkg].abrupt {
			root = ""
		}
		i := slices.IndexFunc(r.grouped, func(g *group) bool { return g.pkg == f.pkg && g.test == root && !g.repeated })
		if i < 0 {
			if slices.ContainsFunc(r.grouped, func(g *group) bool { return g.pkg == f.pkg && g.test == root }) {
				continue // it was repeated
			}
			r.grouped = append(r.grouped, &group{pkg: f.pkg, test: root})
			i = len(r.grouped) - 1
		}
		g := r.grouped[i]
		g.never = g.never || f.never
	}
	return r.grouped
}

// forgive takes what passed when it was repeated from the failures into the list of unsteady tests.
func (r *report) forgive(g *group, again *report) {
	u := unsteady{Date: time.Now().UTC().Truncate(time.Second), Package: g.pkg, Test: g.test}
	r.failures = slices.DeleteFunc(r.failures, func(f failure) bool {
		root, _, _ := strings.Cut(f.test, "/")
		if f.pkg != g.pkg || g.test != "" && root != g.test {
			return false
		}
		u.Output = append(u.Output, f.logged...)
		u.Seconds, u.Load = max(u.Seconds, f.seconds), max(u.Load, f.load)
		g.failed++
		return true
	})
	if g.test == "" { // nobody knows which of its tests had run
		for verdict, n := range r.results[g.pkg].counts {
			r.counts[verdict] -= n
		}
		for verdict, n := range again.counts {
			r.counts[verdict] += n
		}
	} else {
		r.counts["fail"] -= g.failed
		r.counts["pass"] += g.failed
	}
	r.unsteady = append(r.unsteady, u)
}

// printUnsteady lists what failed and passed alone.
func (r *report) printUnsteady() {
	if len(r.unsteady) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nunsteady: these failed beside others, and passed alone")
	for _, u := range r.unsteady {
		f := failure{pkg: u.Package, test: u.Test, logged: u.Output}
		show := f.lines(linesOfATest)
		fmt.Fprintf(r.out, "%s  after %.0f s, at a load of %.1f\n", show[0], u.Seconds, u.Load)
		for _, l := range show[1:] {
			fmt.Fprintln(r.out, l)
		}
	}
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
