package kernels

import (
	"regexp"
	"strings"
	"testing"
)

// outcome is how a test in a guest ended, with what it and its subtests said.
type outcome struct {
	verdict, name, seconds, said string
}

var (
	// ended is the line by which a compiled test tells how one test ended.
	ended = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)`)
	// speaks is the line by which it tells whose lines follow, and passed one that says no more than that.
	speaks = regexp.MustCompile(`^=== (?:RUN|CONT|NAME|PAUSE)\s+(\S+)`)
	passed = regexp.MustCompile(`^\s+--- PASS: `)
)

// outcomes reads the output of a compiled test that ran with -test.v.
func outcomes(output string) []outcome {
	var (
		list []outcome
		who  string
		said = map[string]*strings.Builder{}
	)
	for line := range strings.Lines(output) {
		if m := speaks.FindStringSubmatch(line); m != nil {
			who, _, _ = strings.Cut(m[1], "/")
			continue
		}
		if m := ended.FindStringSubmatch(line); m != nil {
			list, who = append(list, outcome{verdict: m[1], name: m[2], seconds: m[3]}), m[2]
			continue // what follows are the outcomes of its subtests, or of a test that panicked, why
		}
		if passed.MatchString(line) {
			continue
		}
		if said[who] == nil {
			said[who] = &strings.Builder{}
		}
		said[who].WriteString(line)
	}
	for i := range list {
		if b := said[list[i].name]; b != nil {
			list[i].said = b.String()
		}
	}
	return list
}

// A test that failed in a guest is reported with its own lines, also those of its subtests and of parallel ones.
func TestOutcomesHaveWhatEachTestSaid(t *testing.T) {
	got := outcomes(`=== RUN   TestGood
    good_test.go:3: fine
--- PASS: TestGood (0.01s)
=== RUN   TestParts
=== RUN   TestParts/one
=== PAUSE TestParts/one
=== RUN   TestParts/two
    parts_test.go:9: broken
        and more of it
=== CONT  TestParts/one
    parts_test.go:5: missing
=== NAME  TestParts
    parts_test.go:7: at the end
--- FAIL: TestParts (2.50s)
    --- PASS: TestParts/one (0.00s)
    --- FAIL: TestParts/two (0.00s)
=== RUN   TestSkips
    skips_test.go:1: no bridge
--- SKIP: TestSkips (0.00s)
=== RUN   TestPanics
--- FAIL: TestPanics (0.00s)
panic: no
`)
	want := []outcome{
		{"PASS", "TestGood", "0.01", "    good_test.go:3: fine\n"},
		{"FAIL", "TestParts", "2.50", "    parts_test.go:9: broken\n        and more of it\n" +
			"    parts_test.go:5: missing\n    parts_test.go:7: at the end\n    --- FAIL: TestParts/two (0.00s)\n"},
		{"SKIP", "TestSkips", "0.00", "    skips_test.go:1: no bridge\n"},
		{"FAIL", "TestPanics", "0.00", "panic: no\n"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d outcomes, want %d: %+v", len(got), len(want), got)
	}
	for i, o := range got {
		t.Run(want[i].name, func(t *testing.T) {
			if o != want[i] {
				t.Errorf("got\n%+v\nwant\n%+v", o, want[i])
			}
		})
	}
}
