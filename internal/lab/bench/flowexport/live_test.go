package flowexport_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/bench/flowexport"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

// short are options for a run of moments: it yields numbers, but no valid figures.
func short(t *testing.T) flowexport.Options {
	t.Helper()
	testkit.Root(t)
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := flowexport.Options{Now: time.Now, Heddle: self, RunDir: t.TempDir()}
	o.Default()
	o.Rounds, o.Turns, o.Warmup, o.Duration = 1, 1, 150*time.Millisecond, 100*time.Millisecond
	o.Flows, o.Settle = 1000, o.Warmup
	return o
}

// runUntilAllCarry runs with longer and longer times until each cell has carried something: on a busy machine a load
// may not get the CPU for a moment.
func runUntilAllCarry(t *testing.T, o flowexport.Options) *report.Report {
	t.Helper()
	for {
		rep, err := flowexport.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		idle := slices.ContainsFunc(rep.Rows, func(r report.Row) bool {
			s, measured := r.Get("value").(report.Spread)
			return measured && s.Min < 10
		})
		if !idle || o.Duration > 5*time.Second {
			return rep
		}
		o.Warmup, o.Duration = 4*o.Warmup, 4*o.Duration
		o.Settle = o.Warmup // no other warm-up may be longer than that
	}
}

func TestEveryLoadIsMeasuredOnTwoHosts(t *testing.T) {
	testkit.Long(t, "measures every load; TestEveryPacketOfEveryQueueIsMetered has this bench's hosts")
	o := short(t)
	o.Loads, o.Pairs = []string{"udp-512", "crr-4", "stream"}, []int{2}
	o.Configurations = []string{"ipfix-bi+5k"}
	rep := runUntilAllCarry(t, o)
	if len(rep.Rows) != 7 {
		t.Fatalf("%d rows, want 3 cells in 2 configurations, and the background alone", len(rep.Rows))
	}
	if s, ok := rep.Rows[6].Get("background_percent").(report.Spread); !ok || s.Rounds == 0 {
		t.Errorf("the background alone: %+v", rep.Rows[6])
	}
	for _, row := range rep.Rows[:6] {
		where := fmt.Sprintf("%v, %v", row.Get("cell"), row.Get("configuration"))
		want := 1
		if row.Get("configuration") == "baseline+5k" {
			want = 2 // before and after
		}
		if s := row.Get("value").(report.Spread); s.Rounds != want || s.Median < 10 {
			t.Errorf("%s: rate %+v", where, s)
		}
		for _, h := range []string{"tx", "rx"} {
			// In seconds, of a machine that is as busy as may be: nanoseconds would be more than one.
			if s := row.Get("program_s_" + h).(report.Spread); s.Rounds != want ||
				s.Median < 1e-9 || s.Median > 1 {
				t.Errorf("%s: a program takes %g s per run on %s", where, s.Median, h)
			}
		}
	}
	for _, b := range rep.Budgets {
		if (strings.Contains(b.Name, "exported records") || strings.Contains(b.Name, "no room")) && !b.Met {
			t.Errorf("%+v: metering was not measured", b)
		}
	}
	leftNothing(t, o)
}

func TestCancelLeavesNothing(t *testing.T) {
	testkit.Long(t, "interrupts measurements at each place")
	o := short(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Rounds, o.Duration, o.Pairs = 1000, time.Hour, []int{2}
	o.Progress = func(_, total int, _ string) {
		if total > 1 { // the lab is up
			time.AfterFunc(50*time.Millisecond, cancel)
		}
	}
	if _, err := flowexport.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	leftNothing(t, o)
}

// leftNothing checks that neither a namespace nor a record of a lab is left.
func leftNothing(t *testing.T, o flowexport.Options) {
	t.Helper()
	for _, pattern := range []string{fmt.Sprintf("/var/run/netns/*fe%d*", os.Getpid()),
		filepath.Join(o.RunDir, "lab", "*")} {
		left, err := filepath.Glob(pattern)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
