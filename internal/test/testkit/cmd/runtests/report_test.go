package main

import (
	"strings"
	"testing"
)

// events joins lines of a go test -json stream, with "T" standing for the test and "P" for the package key.
func events(lines ...string) string {
	return strings.NewReplacer(`"A"`, `"Action"`, `"P"`, `"Package"`, `"T"`, `"Test"`, `"O"`, `"Output"`).
		Replace(strings.Join(lines, "\n") + "\n")
}

func reportOf(t *testing.T, stream string) (string, bool) {
	t.Helper()
	var b strings.Builder
	r := newReport(&b)
	if err := read(strings.NewReader(stream), r); err != nil {
		t.Fatal(err)
	}
	good := r.close()
	return b.String(), good
}

func check(t *testing.T, stream string, wantGood bool, want ...string) {
	t.Helper()
	got, good := reportOf(t, stream)
	if good != wantGood {
		t.Errorf("good = %v, want %v", good, wantGood)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("the report lacks %q:\n%s", w, got)
		}
	}
}

func TestCountsLeavesAndSkipReasons(t *testing.T) {
	check(t, events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"run","P":"a","T":"TestX/one"}`,
		`{"A":"run","P":"a","T":"TestX/two"}`,
		`{"A":"pass","P":"a","T":"TestX/one"}`,
		`{"A":"output","P":"a","T":"TestX/two","O":"    x_test.go:7: missing requirement: root\n"}`,
		`{"A":"skip","P":"a","T":"TestX/two"}`,
		`{"A":"pass","P":"a","T":"TestX"}`,
		`{"A":"pass","P":"a","Elapsed":1.5}`,
	), true, "ok  \ta\t1.50s\t1 passed, 0 failed, 1 skipped\n", "     1  missing requirement: root\n",
		"\n1 passed, 0 failed, 1 skipped\n")
}

func TestShowsFailuresInFullAndCountsThemOnce(t *testing.T) {
	check(t, events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"run","P":"a","T":"TestX/one"}`,
		`{"A":"output","P":"a","T":"TestX/one","O":"    x_test.go:7: broken\n"}`,
		`{"A":"fail","P":"a","T":"TestX/one"}`,
		`{"A":"fail","P":"a","T":"TestX"}`,
		`{"A":"run","P":"a","T":"TestY"}`,
		`{"A":"pass","P":"a","T":"TestY"}`,
		`{"A":"fail","P":"a"}`,
	), false, "x_test.go:7: broken\n", "\n1 passed, 1 failed, 0 skipped\n")
}

func TestParentThatFailsByItselfCounts(t *testing.T) {
	check(t, events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"run","P":"a","T":"TestX/one"}`,
		`{"A":"pass","P":"a","T":"TestX/one"}`,
		`{"A":"fail","P":"a","T":"TestX"}`,
		`{"A":"fail","P":"a"}`,
	), false, "\n1 passed, 1 failed, 0 skipped\n")
}

func TestPartsOfNamesAreNoTests(t *testing.T) {
	check(t, events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"run","P":"a","T":"TestX/one/a"}`,
		`{"A":"pass","P":"a","T":"TestX/one/a"}`,
		`{"A":"run","P":"a","T":"TestX/two/a"}`,
		`{"A":"fail","P":"a","T":"TestX/two/a"}`,
		`{"A":"fail","P":"a","T":"TestX"}`,
		`{"A":"fail","P":"a"}`,
	), false, "\n1 passed, 1 failed, 0 skipped\n")
}

func TestUnfinishedTestsAndPackagesFail(t *testing.T) {
	check(t, events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"output","P":"a","T":"TestX","O":"panic: no\n"}`,
	), false, "panic: no\n", "FAIL\ta\t", "\n0 passed, 1 failed, 0 skipped\n")
}

func TestBuildFailureShowsTheCompilersWords(t *testing.T) {
	check(t, events(
		`{"ImportPath":"a [a.test]","A":"build-output","O":"./x.go:3: undefined: y\n"}`,
		`{"ImportPath":"a [a.test]","A":"build-fail"}`,
		`{"A":"fail","P":"a","FailedBuild":"a [a.test]"}`,
	), false, "./x.go:3: undefined: y\n", "\n0 passed, 1 failed, 0 skipped\n")
}

func TestNothingRunIsNoSuccess(t *testing.T) {
	check(t, events(`{"A":"skip","P":"a"}`), false, "\n0 passed, 0 failed, 0 skipped\n")
}

func TestLinesThatAreNoEventsAreShown(t *testing.T) {
	check(t, "warning: odd\n", false, "warning: odd\n")
}

func TestUnseenEndInAGoodPackageIsNoFailure(t *testing.T) {
	check(t, events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"output","P":"a","T":"TestX","O":"progress--- PASS: TestX (0.00s)\n"}`,
		`{"A":"pass","P":"a"}`,
	), true, "\n1 passed, 0 failed, 0 skipped\n")
}
