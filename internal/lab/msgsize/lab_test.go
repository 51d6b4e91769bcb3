package msgsize

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

// little is one size, one MTU, one round, for a moment.
func little() effort {
	return effort{sizes: []int{1024}, mtus: []int{9000}, rounds: 1, duration: 50 * time.Millisecond,
		warmup: 10 * time.Millisecond}
}

func pid() string { return strconv.Itoa(os.Getpid()) }

func namespaces(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestMessagesPassDirectlyAndThroughTheFirewall(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	testkit.Tool(t, "nft")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, e := t.TempDir(), little()
	m, err := run(ctx, Options{RunDir: dir}, e)
	if err != nil {
		t.Fatal(err)
	}
	if m.passed == 0 {
		t.Error("no packet passed the firewalls")
	}
	for _, c := range e.cells() {
		if s := m.samples[c]; len(s) != 1 || s[0].bitsPerSecond <= 0 || s[0].perSegment < 1 || s[0].cpu <= 0 {
			t.Errorf("%v: %+v", c, s)
		}
		// A segment of the wire fits into a frame, with offloads and without.
		if s := m.samples[c]; s[0].perSegment > 9000 {
			t.Errorf("%v: %.0f bytes in a segment at an MTU of 9000", c, s[0].perSegment)
		}
	}
	if r := m.Report(); len(r.Rows) != 1 || len(r.Budgets) != 3 ||
		r.Rows[0].Get("firewall_on_9000_bps").(report.Spread).Rounds != 1 {
		t.Errorf("report %+v", r)
	}
	if left := namespaces(t); strings.Contains(left, "size"+pid()) {
		t.Errorf("left behind: %s", left)
	}
}

func TestAFirewallThatLetsEverythingInIsFoundOut(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	testkit.Tool(t, "nft")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	e := little()
	r, err := build(ctx, Options{RunDir: t.TempDir()}, e)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.lab.Down(); err != nil {
			t.Error(err)
		}
	}()
	open := e.sets()[0]
	fw, err := r.namespace(open, filter)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"flush", "chain", "inet", "firewall", "forward"},
		{"chain", "inet", "firewall", "forward", "{ policy accept; }"}} {
		if out, err := fw.Output("nft", args...); err != nil {
			t.Fatalf("nft %v: %v: %s", args, err, out)
		}
	}
	if err := r.tryFirewall(ctx, open); err == nil || !strings.Contains(err.Error(), "not refused by the firewall") {
		t.Errorf("an open firewall: %v", err)
	}
	if err := r.tryFirewall(ctx, e.sets()[1]); err != nil {
		t.Errorf("the other firewall: %v", err)
	}
	m := &Measured{}
	if err := m.account(r, open, 1); err == nil || !strings.Contains(err.Error(), "let 0 bytes pass") {
		t.Errorf("traffic that the rules have not seen: %v", err)
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	testkit.Tool(t, "nft")
	ctx, cancel := context.WithCancel(context.Background())
	e := little()
	e.rounds = 1000
	_, err := run(ctx, Options{RunDir: t.TempDir(), Progress: func(what string) {
		if strings.HasPrefix(what, "round 2") {
			cancel()
		}
	}}, e)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("run = %v", err)
	}
	if left := namespaces(t); strings.Contains(left, "size"+pid()) {
		t.Errorf("left behind: %s", left)
	}
}
