package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module makes a module whose tests fail at their first run in all, or always, and gives the runner's output on it.
func module(t *testing.T, tests string, args ...string) (out string, good bool, kept string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n\ngo 1.24\n")
	if err := os.MkdirAll(filepath.Join(dir, "a", "TestA"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("a/a.go", "package a\n")
	write("a/a_test.go", `package a

import (
	"os"
	"os/exec"
	"testing"
)

var _ = exec.Command

// once fails at its first call in all.
func once(t *testing.T) {
	at := "TestA/" + t.Name()
	if _, err := os.Stat(at); err != nil {
		_ = os.MkdirAll(at, 0o700)
		t.Fatal("not yet")
	}
}
`+tests)
	kept = filepath.Join(dir, "kept.jsonl")
	return again(t, dir, kept, args...)
}

// again runs the runner in a module.
func again(t *testing.T, dir, kept string, args ...string) (string, bool, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-kept", kept}, append(args, "./...")...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asRunner+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err == nil, kept
}

// asRunner is the environment variable by which this test program is the runner.
const asRunner = "RUNTESTS_IS_THE_RUNNER"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func has(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(out) {
			t.Errorf("%q is not in\n%s", p, out)
		}
	}
}

// A test that fails and passes alone is unsteady: the run is good, the list keeps it, and the next time it fails.
func TestWhatPassesAloneIsUnsteadyOnce(t *testing.T) {
	t.Parallel()
	out, good, kept := module(t, "func TestA(t *testing.T) { t.Run(\"x\", once); t.Run(\"y\", func(*testing.T) {}) }\n")
	has(t, out, `(?m)^once more, alone: m/a TestA$`, `(?s)unsteady: .*\n  m/a  TestA  after \d+ s, at a load of`,
		`a_test.go:\d+: not yet`, `\n2 passed, 0 failed, 0 skipped\n$`)
	list, err := readUnsteady(kept)
	if !good || err != nil || len(list) != 1 || list[0].Package != "m/a" || list[0].Test != "TestA" {
		t.Fatalf("good %v, kept %+v, %v\n%s", good, list, err, out)
	}
	if err := os.RemoveAll(filepath.Join(filepath.Dir(kept), "a", "TestA")); err != nil { // what once remembers
		t.Fatal(err)
	}
	out, good, _ = again(t, filepath.Dir(kept), kept)
	if good {
		t.Error("it is good a second time")
	}
	has(t, out, `1 of the unsteady tests are in the kept list already`, `\n1 passed, 1 failed, 0 skipped\n$`)
}

func TestWhatIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct{ tests, want string }{
		"fails again": {"func TestA(t *testing.T) { t.Fatal(\"never right\") }\n",
			`(?s)once more, alone.*failed:\n  m/a  TestA\n.*\n0 passed, 1 failed`},
		"proves never": {"func TestA(t *testing.T) { t.Attr(\"heddle-never\", \"TestA\"); once(t) }\n",
			`(?s)failed:\n  m/a  TestA\n.*\n0 passed, 1 failed`},
		"leaves a process": {"func TestA(t *testing.T) { _ = exec.Command(\"sleep\", \"1000\").Start() }\n",
			`(?s)left processes behind, which were killed: sleep.*1 passed, 1 failed`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, good, kept := module(t, c.tests)
			if good {
				t.Error("the run is good")
			}
			has(t, out, c.want)
			if name != "fails again" && strings.Contains(out, "once more") {
				t.Errorf("it is repeated:\n%s", out)
			}
			if list, err := readUnsteady(kept); err != nil || len(list) > 0 {
				t.Errorf("kept: %v, %v", list, err)
			}
		})
	}
}

// A test program that ends in the middle is repeated as a whole: nobody knows which of its tests would have failed.
func TestAProgramThatEndsInTheMiddleIsRepeatedAsAWhole(t *testing.T) {
	t.Parallel()
	out, good, _ := module(t, `func TestA(t *testing.T) {
	if _, err := os.Stat("was"); err != nil {
		_ = os.WriteFile("was", nil, 0o600)
		panic("no")
	}
}
func TestB(*testing.T) {}
`)
	has(t, out, `(?m)^once more, alone: m/a $`, `panic: no`, `\n2 passed, 0 failed, 0 skipped\n$`)
	if !good {
		t.Error("the run is not good")
	}
}

func TestMoreThanThreeUnsteadyTestsFail(t *testing.T) {
	t.Parallel()
	tests := ""
	for _, n := range []string{"A", "B", "C", "D"} {
		tests += "func Test" + n + "(t *testing.T) { once(t) }\n"
	}
	out, good, _ := module(t, tests)
	if good {
		t.Error("the run is good")
	}
	has(t, out, `4 tests are unsteady, and a run may have 3`, `\n3 passed, 1 failed, 0 skipped\n$`)
}

// Long tests are counted apart, and run with -all; tests that compare times run at the end.
func TestLongAndTimedTests(t *testing.T) {
	t.Parallel()
	const tests = `func TestTime_B(t *testing.T) {
	if _, err := os.Stat("a"); err != nil {
		t.Fatal("it runs before the others")
	}
}
func TestA(*testing.T) { _ = os.WriteFile("a", nil, 0o600) }
func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: takes long")
	}
}
`
	out, good, _ := module(t, tests)
	has(t, out, `\nleft to make test-all: 1 long tests\n`, `\n2 passed, 0 failed, 0 skipped\n$`)
	if !good {
		t.Error("the run is not good")
	}
	out, good, _ = module(t, tests, "-all")
	has(t, out, `\n3 passed, 0 failed, 0 skipped\n$`)
	if !good || slices.Contains(strings.Fields(out), "left") {
		t.Errorf("good %v:\n%s", good, out)
	}
}
