package hostile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

// Every flood runs for a moment: the limits hold and nobody else's entry is lost. How much the victims notice is for
// the experiment to measure.
func TestS15_D27_LimitsHoldBesideEveryFlood(t *testing.T) {
	testkit.Long(t, "floods in each way; kerneltest has storms that are bounded")
	testkit.Never(t)
	testkit.Root(t)
	testkit.Weigh(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	much, err := Options{}.effort()
	if err != nil {
		t.Fatal(err)
	}
	much.rounds, much.each, much.warmup = 1, 30*time.Millisecond, 10*time.Millisecond
	all, err := run(ctx, Options{RunDir: t.TempDir()}, much)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(rows()) {
		t.Fatalf("%d rows", len(all))
	}
	for _, m := range all {
		if m.Lost > 0 || m.Held > macLimit || m.Over > 0 {
			t.Errorf("%s: %d entries of others lost, %d addresses held, %d frames above the rate", m.Row.name, m.Lost,
				m.Held, m.Over)
		}
		for _, s := range []side{m.Hostile, m.Good} {
			if len(s.Throughput) != 1 || len(s.RTT) != 1 || len(s.Sent) != 1 || len(s.CPU) != 1 || len(s.Busy) != 1 {
				t.Fatalf("%s: %+v", m.Row.name, s)
			}
			if s.Sent[0] == 0 || s.Throughput[0] == 0 || s.RTT[0] == 0 || s.CPU[0] == 0 || s.Busy[0] == 0 {
				t.Errorf("%s: %+v", m.Row.name, s)
			}
		}
		if m.Good.Passed[0] < m.Good.Sent[0]/2 {
			t.Errorf("%s: of a well-behaved neighbour's %.0f frames a second %.0f passed", m.Row.name, m.Good.Sent[0],
				m.Good.Passed[0])
		}
	}
}

func TestNeighboursTakeTurnsSoThatNeitherIsFavoured(t *testing.T) {
	if !order(0)[0] {
		t.Error("the well-behaved neighbour is first of all, and does not know how loud to be")
	}
	for n := range 2 {
		places := map[bool]int{}
		for i, bad := range order(n) {
			places[bad] += i
		}
		if places[true] != places[false] {
			t.Errorf("round %d: %v", n, order(n))
		}
	}
	if order(0)[0] == order(1)[0] {
		t.Error("the same neighbour is first in every round")
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	if all, err := chosen(nil); err != nil || len(all) != len(rows()) {
		t.Errorf("%d rows, %v", len(all), err)
	}
	if some, err := chosen([]string{"broadcast", "random-source"}); err != nil || len(some) != 2 ||
		some[1].name != "random-source" {
		t.Errorf("%v, %v", some, err)
	}
	if err := (Options{Rows: []string{"nonsense"}}).Check(); !errors.Is(err, experiment.ErrUnknown) ||
		!strings.Contains(err.Error(), "broadcast-limited") {
		t.Errorf("unknown row: %v", err)
	}
}

func TestEntriesThatGoOrMoveAreLost(t *testing.T) {
	before := table{others: map[string]string{"10 02:00:00:00:00:01": "n", "10 02:00:00:00:00:02": "n",
		"10 02:00:00:00:00:03": "a"}}
	after := table{others: map[string]string{"10 02:00:00:00:00:01": "n", "10 02:00:00:00:00:02": "a",
		"10 02:00:00:00:00:04": "n"}}
	if n := before.lost(after); n != 2 {
		t.Errorf("%d lost: one moved and one went", n)
	}
}

func TestTheReportHoldsWhatWasMeasuredAgainstTheBudgets(t *testing.T) {
	good := side{Throughput: []float64{10, 20, 30}, RTT: []float64{1e-5, 2e-5, 3e-5}, Sent: []float64{100, 100, 100},
		Passed: []float64{100, 100, 100}, CPU: []float64{1, 1, 1}}
	hostile := side{Throughput: []float64{9.5, 19, 28}, RTT: []float64{1.05e-5, 2e-5, 3e-5},
		Sent: []float64{100, 100, 100}, Passed: []float64{1, 1, 1}, CPU: []float64{1.05, 1.05, 1.05}}
	all := []Measured{{Row: rows()[0], Good: good, Hostile: hostile, Held: macLimit},
		{Row: rows()[4], Good: good, Hostile: hostile}}
	if err := Report(all).Check(); err != nil {
		t.Error(err)
	}
	all[0].Held, all[0].Lost, all[1].Over = macLimit+1, 1, 1
	all[1].Hostile.Throughput = []float64{8, 16, 24}
	all[1].Hostile.RTT = []float64{2e-5, 4e-5, 6e-5}
	all[1].Hostile.CPU = []float64{1.2, 1.2, 1.2}
	err := Report(all).Check()
	if !errors.Is(err, report.ErrBudget) {
		t.Fatal(err)
	}
	for _, want := range []string{"random-source MACs learned", "random-source entries lost",
		"broadcast-limited frames above the rate", "broadcast-limited throughput", "broadcast-limited CPU",
		"broadcast-limited p99"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "random-source throughput") {
		t.Error(err)
	}
}
