package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A test program that hangs ends with its goroutines, and the report says so of the test that was running.
func TestATestThatHangsShowsWhere(t *testing.T) {
	const part = "RUNTESTS_HANGS"
	again := []string{os.Args[0], "-test.v=test2json", "-test.run=^" + t.Name() + "$"}
	switch os.Getenv(part) {
	case "the runner":
		t.Setenv(part, "the test")
		status, _ := measure(again, 3*time.Second)
		os.Exit(status)
	case "the test":
		hangsHere()
	}
	cmd := exec.Command(again[0], again[1:]...)
	cmd.Env = append(os.Environ(), part+"=the runner")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("it ends with %v", err)
	}
	mark := hangMark + "it has said nothing for 3s; its goroutines follow"
	for _, want := range []string{"=== RUN   " + t.Name(), "\n" + mark + "\n", "runtests.hangsHere"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	hasLines(t, section(t, `{"A":"run","P":"a","T":"TestX"}`, output("TestX", mark), `{"A":"fail","P":"a"}`),
		"  a  TestX", "      "+mark)
}

// hangsHere waits for what never comes: a timer is set, so that Go does not find that out by itself.
func hangsHere() {
	never := make(chan struct{})
	defer time.AfterFunc(time.Hour, func() {}).Stop()
	<-never
}

func TestPackagesWithGuestsMaySayNothingForLonger(t *testing.T) {
	for dir, want := range map[string]time.Duration{"/x/internal/test/kernels": longestOfGuests,
		"/x/internal/lab/qemu": longestOfGuests, "/x/internal/test/smoke": longestQuiet} {
		if got := quietOf(dir); got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
	for _, p := range ofGuests {
		if _, err := os.Stat("../../../../../" + p); err != nil {
			t.Error(err)
		}
	}
}
