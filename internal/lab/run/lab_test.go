package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
	"heddle/internal/test/testkit"
)

// testTime limits every test that builds labs.
const testTime = 2 * time.Minute

// newRunner prepares to run rows with little effort.
func newRunner(t *testing.T) (context.Context, *runner) {
	t.Helper()
	testkit.Root(t)
	testkit.Weigh(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	r := &runner{
		Options: Options{RunDir: t.TempDir()},
		effort:  effort{pings: 11, pingRate: 50},
		labs:    map[*scenario.Scenario]*lab.Lab{},
	}
	t.Cleanup(func() {
		cancel()
		if err := r.clear(); err != nil {
			t.Error(err)
		}
		if left := leftovers(t, r.RunDir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return ctx, r
}

// leftovers lists what labs of this process have left on the machine.
func leftovers(t *testing.T, runDir string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(runDir, "lab", "*"))
	if err != nil {
		t.Fatal(err)
	}
	namespaces, err := filepath.Glob("/var/run/netns/" + labName(1)[:len(labName(1))-1] + "*")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), runDir) {
		left = append(left, "a mount below "+runDir)
	}
	return append(left, namespaces...)
}

// Replies and copies per ping follow from the rules of forwarding alone, so they are exact. The uplink copies of
// promiscuous-dual: one of the request, and one of each of the two answers it gets.
func TestS91_RepliesAndUplinkCopiesPerPing(t *testing.T) {
	ctx, r := newRunner(t)
	e, err := experiment.Find(experiment.Nested)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row             string
		replies, copies float64
	}{
		{"promiscuous-dual", 4, 3},
		{"promiscuous-dual-checked", 1, 2},
		{"mac-learning-dual", 1, 0},
	} {
		m := Measured{Row: e.Row(c.row)}
		if err := r.prepare(ctx, m.Row, func(string) {}); err != nil {
			t.Fatalf("%s: %v", c.row, err)
		}
		if err := r.ping(ctx, &m); err != nil {
			t.Fatalf("%s: %v", c.row, err)
		}
		if m.RepliesPerPing != c.replies {
			t.Errorf("%s: %.2f replies per ping, want %.1f", c.row, m.RepliesPerPing, c.replies)
		}
		if len(m.Duplicates) != int(c.replies)-1 {
			t.Errorf("%s: the delays of duplicates are %v", c.row, m.Duplicates)
		}
		if m.PingUplinkFrames != c.copies {
			t.Errorf("%s: %.2f copies to uplinks per ping, want %.1f", c.row, m.PingUplinkFrames, c.copies)
		}
	}
}

func TestInterruptedExperimentLeavesNothing(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	e, err := experiment.Find(experiment.Nested)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"starting agents", "pings", "throughput"} {
		t.Run(at, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			runDir := t.TempDir()
			reached := false
			_, err := Experiment(ctx, e, Options{
				RunDir: runDir, Quick: true, Rows: []string{"mac-learning-single"},
				Progress: func(what string) {
					if strings.Contains(what, at) {
						reached = true
						time.AfterFunc(50*time.Millisecond, cancel) // in the middle of it
					}
				},
			})
			if !reached || !errors.Is(err, context.Canceled) {
				t.Errorf("Experiment = %v, want that it was interrupted at %q", err, at)
			}
			if left := leftovers(t, runDir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Beside a stream, pings are answered later; the round trips of each round are kept.
func TestPingsRunBesideTheStream(t *testing.T) {
	ctx, r := newRunner(t)
	e, err := experiment.Find(experiment.Nested)
	if err != nil {
		t.Fatal(err)
	}
	m := Measured{Row: e.Row("mac-learning-single")}
	if err := r.prepare(ctx, m.Row, func(string) {}); err != nil {
		t.Fatal(err)
	}
	p, err := r.ends(m.Row)
	if err != nil {
		t.Fatal(err)
	}
	r.effort.stream, r.effort.warmup = 200*time.Millisecond, 50*time.Millisecond
	for len(m.LoadP50) == 0 { // a busy machine may answer none in time
		if err := r.streamRound(ctx, p, &m); err != nil {
			t.Fatal(err)
		}
	}
	if m.LoadP50[0] <= 0 || m.LoadP99[0] < m.LoadP50[0] || len(m.Stream) == 0 {
		t.Errorf("round trips of %v and %v s beside streams of %v b/s", m.LoadP50, m.LoadP99, m.Stream)
	}
}
