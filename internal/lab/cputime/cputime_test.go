package cputime

import (
	"os"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

func TestParseStat(t *testing.T) {
	// user, nice, system, irq and softirq count; idle, iowait, steal and guest do not.
	got, err := parseStat("cpu  100 20 300 9999 888 4 500 77 66 55\ncpu0 1 2 3\n")
	if err != nil || got != 9240*time.Millisecond {
		t.Errorf("parseStat = %v, %v, want 9.24 s", got, err)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7", "cpu a b c d e f g"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q) is no error", bad)
		}
	}
}

func TestCPUTimesGrowWithWork(t *testing.T) {
	machine, err := Machine()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	before, err := Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for began, n := time.Now(), 0; time.Since(began) < time.Minute; n++ {
		now, err := Process(os.Getpid())
		all, machineErr := Machine()
		if err != nil || machineErr != nil {
			t.Fatal(err, machineErr)
		}
		if now > before+20*time.Millisecond && all > machine {
			return
		}
	}
	t.Error("a minute of work is not counted")
}
