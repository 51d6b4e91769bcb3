package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit"
)

func TestCaptureMeasuresEveryStateAndLeavesNothing(t *testing.T) {
	testkit.Long(t, "measures captures in every state; TestEveryPeerCarriesTraffic has this bench's lab")
	testkit.Root(t)
	testkit.Weigh(t, 3)
	testkit.Tool(t, "tcpdump")
	t.Setenv("TMPDIR", t.TempDir())
	rep, err := Capture(t.Context(), CaptureOptions{
		Rounds: 1, Warmup: 10 * time.Millisecond, Duration: 30 * time.Millisecond, Now: time.Now,
		Heddle: heddleProgram(t), measure: traffic.Measure,
	})
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	for _, row := range rep.Rows {
		// The difference of two short measurements may be below zero.
		if s, ok := row.Get("value").(report.Spread); !ok || s.Rounds != 1 || s.Median <= 0 &&
			row.Get("test") != "cost" {
			t.Errorf("%v, capture %v: %+v", row.Get("test"), row.Get("capture"), s)
		}
		if s, ok := row.Get("lost").(report.Spread); ok && s.Rounds == 1 {
			measured++
		}
	}
	tunnel := len(tunnelStates())
	if len(rep.Rows) != 3*len(guestStates())+len(programStates())+3+3*tunnel+2*3 ||
		measured != 3*(len(guestStates())-1)+3*(tunnel-1) || len(rep.Budgets) != 3 {
		t.Errorf("%d rows, %d with what was lost", len(rep.Rows), measured)
	}
	leftNothing(t)
}

func TestTheErrorOfAMedian(t *testing.T) {
	spread := func(values ...float64) report.Spread { return report.Summarise(values) }
	if e := medianError(spread(1, 2)); !math.IsNaN(e) {
		t.Errorf("of two values: %v", e)
	}
	if e := medianError(spread(1, 2, 3, 4)); e < 0.4 || e > 1 {
		t.Errorf("of four values: %v", e)
	}
	if e := medianError(spread(7, 7, 7)); e != 0 {
		t.Errorf("of equal values: %v", e)
	}
}

func TestRoundsEndWithTheirTime(t *testing.T) {
	endless := func(from int) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			if n < from {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
	}
	fault := errors.New("a fault")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		within time.Duration
		round  func(context.Context, int) error
		rounds int
		err    error
	}{
		"all in time":          {t.Context(), time.Hour, endless(5), 5, nil},
		"without a bound":      {t.Context(), 0, endless(5), 5, nil},
		"the first never ends": {t.Context(), time.Millisecond, endless(0), 0, nil},
		"one has a fault":      {t.Context(), time.Hour, func(context.Context, int) error { return fault }, 0, fault},
		"interrupted":          {ended, time.Hour, endless(0), 0, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if n, err := inTime(c.ctx, 5, c.within, c.round); n != c.rounds || !errors.Is(err, c.err) {
				t.Errorf("%s: %d rounds, %v", name, n, err)
			}
		})
	}
	// How many have ended before the endless one is begun depends on the machine; the endless one never counts.
	if n, err := inTime(t.Context(), 5, 10*time.Millisecond, endless(3)); n < 1 || n > 3 || err != nil {
		t.Errorf("%d rounds of 3 that end, %v", n, err)
	}
}

func TestTheReportSaysHowManyRoundsThereWere(t *testing.T) {
	r := &captureRun{opts: CaptureOptions{Rounds: 3, Within: 15 * time.Second}, rounds: make([]captureRound, 2)}
	if says := r.method(2); !strings.Contains(says, "2 interleaved rounds of 3, which is what 15s sufficed for") {
		t.Error(says)
	}
	r.rounds = make([]captureRound, 3)
	if says := r.method(2); !strings.HasPrefix(says, "3 interleaved rounds of 0s per test") {
		t.Error(says)
	}
}

func TestEveryInstructionOfTheStraightFilterRuns(t *testing.T) {
	for _, n := range []int{1, 2, longFilter} {
		f := straightFilter(n)
		if err := dataplane.CheckFilter(f); err != nil || len(f) != n {
			t.Errorf("%d instructions: %d, %v", n, len(f), err)
		}
		for _, in := range f {
			if in.JumpTrue != 0 || in.JumpFalse != 0 {
				t.Errorf("%d instructions: one jumps", n)
			}
		}
	}
}
