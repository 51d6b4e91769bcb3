package main

import (
	"fmt"
	"strings"
	"testing"
)

// section returns what the report says between the line "failed:" and the closing line.
func section(t *testing.T, stream ...string) []string {
	t.Helper()
	got, good := reportOf(t, events(stream...))
	if good {
		t.Error("the run counts as good")
	}
	_, after, found := strings.Cut(got, "\nfailed:\n")
	body, closing, both := strings.Cut(after, "\n\n")
	if !found || !both || strings.Count(closing, "\n") != 1 || !strings.HasSuffix(closing, " skipped\n") {
		t.Fatalf("the section is not there, or not just before the closing line:\n%s", got)
	}
	return strings.Split(body, "\n")
}

func hasLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// output is the event of a line that a test of package a prints.
func output(test, line string) string {
	return fmt.Sprintf(`{"A":"output","P":"a","T":%q,"O":%q}`, test, line+"\n")
}

// What a failed test logged is at the end again: the first three lines and the last two, long ones cut. Passed tests
// and the parents of failed ones are not there.
func TestTheEndSaysWhatFailedAndWhy(t *testing.T) {
	stream := []string{
		`{"A":"run","P":"a","T":"TestGood"}`, output("TestGood", "    x_test.go:1: fine"),
		`{"A":"pass","P":"a","T":"TestGood"}`,
		`{"A":"run","P":"a","T":"TestX"}`, `{"A":"run","P":"a","T":"TestX/one"}`,
		output("TestX/one", "=== RUN   TestX/one"),
	}
	for i := 1; i <= 7; i++ {
		stream = append(stream, output("TestX/one", fmt.Sprintf("    x_test.go:%d: line %d", i, i)),
			output("TestX/one", "        and more of it"))
	}
	stream = append(stream, output("TestX/one", "    --- FAIL: TestX/one (0.00s)"),
		`{"A":"fail","P":"a","T":"TestX/one"}`, `{"A":"fail","P":"a","T":"TestX"}`,
		`{"A":"run","P":"a","T":"TestY"}`, output("TestY", "    y_test.go:9: "+strings.Repeat("é", 400)),
		`{"A":"fail","P":"a","T":"TestY"}`, `{"A":"fail","P":"a"}`)
	hasLines(t, section(t, stream...),
		"  a  TestX/one",
		"      x_test.go:1: line 1", "      x_test.go:2: line 2", "      x_test.go:3: line 3",
		"    … x_test.go:6: line 6", "      x_test.go:7: line 7",
		"  a  TestY",
		"      y_test.go:9: "+strings.Repeat("é", 300-len("y_test.go:9: ")-1)+"…")
}

// Lines that a test logs of a test program that it ran somewhere else, in a guest, are its lines too.
func TestTheEndHasLinesOfAnotherTestProgram(t *testing.T) {
	hasLines(t, section(t,
		output("TestK/TestX", "    guest_test.go:157: failed in the guest after 2.50 s:"),
		output("TestK/TestX", "            x_test.go:7: broken"),
		`{"A":"fail","P":"a","T":"TestK/TestX"}`, `{"A":"fail","P":"a","T":"TestK"}`, `{"A":"fail","P":"a"}`),
		"  a  TestK/TestX", "      guest_test.go:157: failed in the guest after 2.50 s:", "      x_test.go:7: broken")
}

func TestTheEndSaysWhyAPackageFailedWithoutATest(t *testing.T) {
	for name, c := range map[string]struct {
		stream []string
		want   []string
	}{
		"not built": {[]string{`{"ImportPath":"a [a.test]","A":"build-output","O":"./x.go:3: undefined: y\n"}`,
			`{"A":"fail","P":"a","FailedBuild":"a [a.test]"}`}, []string{"  a", "      ./x.go:3: undefined: y"}},
		"its TestMain failed": {[]string{output("", "no such database"), output("", "FAIL\ta\t0.1s"),
			`{"A":"fail","P":"a"}`}, []string{"  a", "      no such database"}},
		"panicked": {[]string{`{"A":"run","P":"a","T":"TestX"}`, output("TestX", "panic: no"),
			output("TestX", "\t/src/x.go:12 +0x1d")}, []string{"  a  TestX", "      panic: no"}},
		"a test said nothing": {[]string{`{"A":"fail","P":"a","T":"TestX"}`, `{"A":"fail","P":"a"}`},
			[]string{"  a  TestX"}},
	} {
		t.Run(name, func(t *testing.T) { hasLines(t, section(t, c.stream...), c.want...) })
	}
}

// Forty lines are a screen. With many failed tests it is more of them, with less of each.
func TestTheEndStaysAScreenLong(t *testing.T) {
	for _, c := range []struct{ tests, logged, lines int }{
		{6, 9, 1 + 6*6}, {7, 9, 1 + 7*5}, {13, 9, 1 + 13*3}, {19, 9, 1 + 19*2}, {30, 9, 1 + 30}, {39, 9, 1 + 39},
		{40, 9, 40}, {300, 9, 40}, {19, 1, 1 + 19*2},
	} {
		t.Run(fmt.Sprintf("%d of %d lines", c.tests, c.logged), func(t *testing.T) {
			var stream []string
			for i := range c.tests {
				name := fmt.Sprintf("Test%d", i)
				for range c.logged {
					stream = append(stream, output(name, "    x_test.go:1: broken"))
				}
				stream = append(stream, fmt.Sprintf(`{"A":"fail","P":"a","T":%q}`, name))
			}
			got := section(t, append(stream, `{"A":"fail","P":"a"}`)...)
			if len(got)+1 != c.lines { // and the heading
				t.Errorf("%d lines, want %d:\n%s", len(got)+1, c.lines, strings.Join(got, "\n"))
			}
			named := strings.Count(strings.Join(got, "\n"), "  a  Test")
			more := fmt.Sprintf("  … and %d more", c.tests-named)
			if last := got[len(got)-1]; named != c.tests && last != more {
				t.Errorf("%d of %d tests are named, and the last line is %q, want %q", named, c.tests, last, more)
			}
		})
	}
}
