package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"heddle/internal/test/testkit"
)

// event is one line of `go test -json`; see `go doc test2json` and, for the build's own, `go help buildjson`.
type event struct {
	Action      string
	Package     string
	Test        string
	Elapsed     float64 // seconds
	Output      string
	Key, Value  string // of attr
	ImportPath  string // of build-output and build-fail
	FailedBuild string
}

// test is what is known of one test or, under the empty name, of the package itself.
type test struct {
	verdict string // "pass", "fail", "skip", or "" while it runs
	output  strings.Builder
	parent  bool // has subtests, which are counted instead
	broken  bool // a subtest failed
	never   bool // is not repeated (testkit.Never)
	seconds float64
	load    float64 // of the machine, when it failed
	implied bool    // only a part of its subtests' names so far: t.Run("a/b") makes no test "a"
}

type pkg struct {
	tests map[string]*test
	order []string
	used  time.Duration // CPU time
	// abrupt says that the test program ended before its tests had.
	abrupt bool
}

// cost is what a package that ended took.
type cost struct {
	name string
	used time.Duration
}

// report gathers the events of a run.
type report struct {
	out      io.Writer
	pkgs     map[string]*pkg
	builds   map[string]*strings.Builder // compiler output by import path
	counts   map[string]int              // by verdict
	reasons  map[string]int              // why tests were skipped
	failures []failure
	results  map[string]result // of packages that failed
	grouped  []*group          // its failures by what is repeated together
	again    int               // how many were repeated
	unsteady []unsteady
	left     []string       // packages that are left to make test-all
	long     map[string]int // tests left to it, by why
	remarks  []string
	costs    []cost
	used     time.Duration // CPU time of the tests
	building time.Duration // and of building them
	took     time.Duration
	load     string
}

// result is what is known of a package that failed.
type result struct {
	counts map[string]int
	abrupt bool // it ended before its tests had, so that some may not have run
}

// group is a failed test with its subtests, or a package that ended abruptly as a whole: what is repeated together.
type group struct {
	pkg, test       string
	never, repeated bool
	failed          int // how many are counted as failed
}

func newReport(out io.Writer) *report {
	return &report{
		out: out, pkgs: map[string]*pkg{}, builds: map[string]*strings.Builder{},
		counts: map[string]int{}, reasons: map[string]int{}, results: map[string]result{}, long: map[string]int{},
	}
}

func (r *report) print(s string) { fmt.Fprint(r.out, s) }

// add takes the next event.
func (r *report) add(e event) {
	switch e.Action {
	case "build-output":
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = &strings.Builder{}
		}
		r.builds[e.ImportPath].WriteString(e.Output)
	case "output":
		t := r.test(e)
		if used, ok := usedIn(e.Output); ok {
			r.pkgs[e.Package].used = used
			return
		}
		if strings.TrimSpace(e.Output) == abruptMark {
			r.pkgs[e.Package].abrupt = true
		}
		t.output.WriteString(e.Output)
	case "run":
		r.test(e)
	case "attr":
		if t := r.test(e); e.Key == testkit.NeverAttr {
			t.never = true
		}
	case "pass", "fail", "skip":
		t := r.test(e)
		t.verdict, t.seconds = e.Action, e.Elapsed
		if e.Action == "fail" {
			t.load = loadNow()
		}
		if e.Test == "" {
			r.finish(e)
		}
	}
}

// test finds or makes the test an event is about and tells its parents of it.
func (r *report) test(e event) *test {
	p := r.pkgs[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*test{}}
		r.pkgs[e.Package] = p
	}
	if t := p.tests[e.Test]; t != nil {
		t.implied = t.implied && e.Action == ""
		return t
	}
	if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
		r.test(event{Package: e.Package, Test: e.Test[:i]}).parent = true
	}
	t := &test{implied: e.Action == ""}
	p.tests[e.Test] = t
	p.order = append(p.order, e.Test)
	return t
}

// finish counts and shows a package that has ended.
func (r *report) finish(e event) {
	p := r.pkgs[e.Package]
	delete(r.pkgs, e.Package)
	abrupt := e.Action == "fail" && (p.abrupt || p.unfinished())
	n := p.count(e.Action, r.skipped)
	if e.Action == "fail" && n["fail"] == 0 {
		n["fail"]++ // it did not build, panicked outside a test, or its TestMain failed
	}
	if b := r.builds[e.FailedBuild]; b != nil {
		r.print(b.String())
	}
	if e.Action == "fail" {
		r.print(p.output())
		r.failures = append(r.failures, p.failures(e.Package, r.builds[e.FailedBuild])...)
		r.results[e.Package] = result{n, abrupt}
	}
	for verdict, k := range n {
		r.counts[verdict] += k
	}
	if len(p.tests) == 1 && e.Action != "fail" {
		return // no tests
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "ok  "}[e.Action]
	r.costs = append(r.costs, cost{e.Package, p.used})
	fmt.Fprintf(r.out, "%s\t%s\t%.2fs\t%.1fs CPU\t%s\n", word, e.Package, e.Elapsed, p.used.Seconds(), summary(n))
}

// count counts the package's tests by verdict: those without subtests, and a parent that failed by itself. A test whose
// end was not seen goes the package's way: it panicked or ran out of time, or it passed and the line that says so was
// lost behind something it printed itself.
func (p *pkg) count(verdict string, skipped func(why string)) map[string]int {
	n := map[string]int{}
	for i := len(p.order) - 1; i >= 0; i-- { // subtests come after their parents
		name := p.order[i]
		t := p.tests[name]
		if t.verdict == "" && !t.implied {
			t.verdict = verdict
		}
		if cut := strings.LastIndexByte(name, '/'); cut >= 0 && (t.verdict == "fail" || t.broken) {
			p.tests[name[:cut]].broken = true
		}
		if !t.counts(name) {
			continue
		}
		if t.verdict == "skip" {
			why := skipReason(t.output.String())
			skipped(why)
			if strings.HasPrefix(why, testkit.LongMark) {
				continue // make test-all counts it
			}
		}
		n[t.verdict]++
	}
	return n
}

// unfinished says whether a test began whose end was not told.
func (p *pkg) unfinished() bool {
	return slices.ContainsFunc(p.order, func(name string) bool {
		t := p.tests[name]
		return name != "" && t.verdict == "" && !t.implied
	})
}

// skipped notes why a test was skipped.
func (r *report) skipped(why string) {
	if reason, long := strings.CutPrefix(why, testkit.LongMark); long {
		r.long[reason]++
		return
	}
	r.reasons[why]++
}

// say adds a remark to the end of the report.
func (r *report) say(format string, args ...any) {
	r.remarks = append(r.remarks, fmt.Sprintf(format, args...))
}

// counts says whether the test is counted by itself, and not by its subtests.
func (t *test) counts(name string) bool {
	return name != "" && (!t.parent || t.verdict == "fail" && !t.broken)
}

// verdictLine matches go test's own last words on a package, which the report's line replaces.
var verdictLine = regexp.MustCompile(`(?m)^(FAIL|FAIL\t.*)\n`)

// output is the output of every failed test and of the package itself.
func (p *pkg) output() string {
	var b strings.Builder
	for _, name := range p.order {
		if t := p.tests[name]; name != "" && t.verdict == "fail" {
			b.WriteString(t.output.String())
		}
	}
	if own := p.tests[""]; own != nil {
		b.WriteString(verdictLine.ReplaceAllString(own.output.String(), ""))
	}
	return b.String()
}

// said matches a line that a test logged: "    file_test.go:12: text".
var said = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.+)$`)

// skipReason is the last thing a skipped test said.
func skipReason(output string) string {
	m := said.FindAllStringSubmatch(output, -1)
	if m == nil {
		return "no reason given"
	}
	return m[len(m)-1][1]
}

func summary(n map[string]int) string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", n["pass"], n["fail"], n["skip"])
}

// close counts what never ended, prints the reasons for skips, what failed and the closing line, and says whether the
// run was good: at least one test passed, none failed.
func (r *report) close() bool {
	for _, name := range slices.Sorted(maps.Keys(r.pkgs)) {
		r.add(event{Action: "fail", Package: name})
	}
	if len(r.reasons) > 0 {
		fmt.Fprintln(r.out, "\nskipped:")
	}
	for _, why := range slices.SortedFunc(maps.Keys(r.reasons), func(a, b string) int {
		if d := r.reasons[b] - r.reasons[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	}) {
		fmt.Fprintf(r.out, "%6d  %s\n", r.reasons[why], why)
	}
	r.printLeft()
	r.printCosts()
	r.printUnsteady()
	r.printFailures()
	for _, text := range r.remarks {
		fmt.Fprintf(r.out, "\n%s\n", text)
	}
	fmt.Fprintf(r.out, "\n%s\n", summary(r.counts))
	return r.counts["fail"] == 0 && r.counts["pass"] > 0
}

// shownCosts is how many packages the table of costs names.
const shownCosts = 12

// printCosts says where the CPU time went, the dearest packages first. Time on the clock says less: packages wait for
// one another.
func (r *report) printCosts() {
	if r.used == 0 {
		return
	}
	slices.SortStableFunc(r.costs, func(a, b cost) int { return cmp.Compare(b.used, a.used) })
	rest := r.used
	fmt.Fprintln(r.out, "\nCPU time:")
	for i, c := range r.costs {
		if i == shownCosts {
			break
		}
		rest -= c.used
		fmt.Fprintf(r.out, "%8.1fs  %s\n", c.used.Seconds(), c.name)
	}
	fmt.Fprintf(r.out, "%8.1fs  other packages\n%8.1fs  together, in %s\n%8.1fs  building the tests\n",
		rest.Seconds(), r.used.Seconds(), minutes(r.took), r.building.Seconds())
	if r.load != "" {
		fmt.Fprintln(r.out, r.load)
	}
}

// printLeft says what make test leaves to make test-all.
func (r *report) printLeft() {
	if len(r.left) == 0 && len(r.long) == 0 {
		return
	}
	n := 0
	for _, k := range r.long {
		n += k
	}
	fmt.Fprintf(r.out, "\nleft to make test-all: %d long tests", n)
	if len(r.left) > 0 {
		fmt.Fprintf(r.out, ", and the packages %s", strings.Join(r.left, ", "))
	}
	fmt.Fprintln(r.out)
}
