package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
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
	if err := read(strings.NewReader(stream), r.add, r.print); err != nil {
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
	), true, "ok  \ta\t1.50s\t0.0s CPU\t1 passed, 0 failed, 1 skipped\n", "     1  missing requirement: root\n",
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

func TestTellsCPUTimeByPackageTheDearestFirst(t *testing.T) {
	var b strings.Builder
	r := newReport(&b)
	if err := read(strings.NewReader(events(
		`{"A":"run","P":"a","T":"TestX"}`,
		`{"A":"output","P":"a","T":"TestX","O":"`+usedMark+`1.5s\n"}`,
		`{"A":"pass","P":"a","T":"TestX"}`,
		`{"A":"pass","P":"a","Elapsed":3}`,
		`{"A":"run","P":"b","T":"TestX"}`,
		`{"A":"pass","P":"b","T":"TestX"}`,
		`{"A":"output","P":"b","O":"`+usedMark+`1m1s\n"}`,
		`{"A":"fail","P":"b","Elapsed":3}`,
	)), r.add, r.print); err != nil {
		t.Fatal(err)
	}
	r.used, r.building, r.took = 70*time.Second, 30*time.Second, 2*time.Minute
	r.load = "load: low"
	r.close()
	want := "\nCPU time:\n    61.0s  b\n     1.5s  a\n     7.5s  other packages\n    70.0s  together, in 2 min 0 s\n" +
		"    30.0s  building the tests\nload: low\n"
	if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, usedMark) ||
		!strings.Contains(got, "a\t3.00s\t1.5s CPU\t") {
		t.Errorf("got\n%s\nwant in it\n%s", got, want)
	}
}

// The wrapper ends as the program does, and says what that and its children used.
func TestMeasuresAProgramAndEndsAsItDoes(t *testing.T) {
	if os.Getenv("RUNTESTS_MEASURE") != "" {
		status, _ := measure([]string{"sh", "-c", os.Getenv("RUNTESTS_MEASURE")}, longestQuiet)
		os.Exit(status)
	}
	for name, c := range map[string]struct {
		script string
		status int
	}{
		"passes":             {"exit 0", 0},
		"fails":              {"exit 3", 3},
		"killed":             {"kill -KILL $$", 2},
		"a child that works": {"sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestMeasuresAProgramAndEndsAsItDoes$")
			cmd.Env = append(os.Environ(), "RUNTESTS_MEASURE="+c.script)
			out, _ := cmd.Output()
			first, _, _ := strings.Cut(string(out), "\n")
			used, ok := usedIn(first)
			if !ok || cmd.ProcessState.ExitCode() != c.status {
				t.Fatalf("status %d, want %d; %q", cmd.ProcessState.ExitCode(), c.status, out)
			}
			if name == "a child that works" && used < 20*time.Millisecond {
				t.Errorf("a loop of 200,000 rounds took %v", used)
			}
		})
	}
}

func TestTheLongestPackagesAreStartedFirst(t *testing.T) {
	got := []program{{pkg: "h/b", dir: "/h/b"}, {pkg: "h/a", dir: "/h/a"}, {pkg: "h/internal/test/host",
		dir: "/h/internal/test/host"}, {pkg: "h/internal/test/kernels", dir: "/h/internal/test/kernels"}}
	inOrder(got)
	var names []string
	for _, p := range got {
		names = append(names, p.pkg)
	}
	hasLines(t, names, "h/internal/test/kernels", "h/internal/test/host", "h/a", "h/b")
}

// A list of packages that names one which is not there says nothing.
func TestThePackagesOfTheListsAreThere(t *testing.T) {
	for _, p := range slices.Concat(longest, longPackages, neverPackages) {
		if _, err := os.Stat("../../../../../" + p); err != nil {
			t.Error(err)
		}
	}
}

// Names of other test programs, whose numbers are longer or others, stay, and those that were there before it.
func TestNamesOfATestProgramGoWithIt(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ht23456-1-a", "run123456-2-esx1", "fo123456", "ht234567-1-a", "ht12345-1-a",
		"eth0", "ht23456-9-old"} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hasLines(t, unname(dir, 123456, []string{"eth0", "ht23456-9-old"}), "fo123456", "ht23456-1-a", "run123456-2-esx1")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 4 {
		t.Errorf("left: %v, %v", left, err)
	}
}
