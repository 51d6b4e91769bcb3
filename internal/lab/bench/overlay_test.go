package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit"
)

// TestS84_EveryWayBetweenHostsCarriesTraffic measures, for a moment, each way that "heddle bench overlay" knows, with
// cards that cut segments and with cards that do not.
func TestS84_EveryWayBetweenHostsCarriesTraffic(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	t.Setenv("TMPDIR", t.TempDir())
	for _, name := range append(OverlayPeerNames(), "heddle, segments cut", "vxlan, segments cut",
		"heddle, routed") {
		t.Run(name, func(t *testing.T) {
			peer, how, _ := strings.Cut(name, ", ")
			opts := OverlayOptions{CutSegments: how == "segments cut", Routed: how == "routed"}
			opts.SwitchOptions = SwitchOptions{
				Rounds: 1, Warmup: 10 * time.Millisecond, Duration: 50 * time.Millisecond, Now: time.Now,
				Only: []string{peer}, Heddle: heddleProgram(t), measure: traffic.Measure,
			}
			rep, err := Overlay(t.Context(), opts)
			if errors.Is(err, errUnavailable) {
				t.Skipf("missing requirement: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Rows) != 5 {
				t.Errorf("%d rows, want one for each test", len(rep.Rows))
			}
			for _, row := range rep.Rows {
				if s := row.Get("value").(report.Spread); s.Rounds != 1 || s.Median <= 0 {
					t.Errorf("%v over %s: %+v", row.Get("test"), name, s)
				}
			}
			leftNothing(t)
		})
	}
}

// TestOverlayIsJudgedByRateAndByCPU: a budget of the overlay counts twice; a peer that was not measured, not at all.
func TestOverlayIsJudgedByRateAndByCPU(t *testing.T) {
	speed := map[string]float64{peerHeddle: 1.2, peerVXLAN: 1}
	var order []string
	r := fakeRun(3, func(peer string, _ int) float64 { return speed[peer] }, &order, peerHeddle, peerVXLAN)
	r.comparison = OverlayOptions{}.comparison()
	same := r.opts.measure
	r.opts.measure = func(ctx context.Context, p traffic.Pair, l traffic.Load) (traffic.Result, error) {
		res, err := same(ctx, p, l)
		if p.Addr == r.paths[0].b.addr { // heddle's
			res.Sink.CPUSeconds *= 3
		}
		return res, err
	}
	if err := r.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep := r.report(report.Environment{})
	var names []string
	for _, b := range rep.Budgets {
		names = append(names, b.Name)
	}
	ofVLAN := func(n string) bool { return strings.Contains(n, peerVLAN+",") }
	if len(names) != 10 || slices.ContainsFunc(names, ofVLAN) {
		t.Fatalf("budgets %q, want those of five tests against vxlan by rate and by CPU", names)
	}
	by := rep.Budgets[slices.Index(names, "udp: heddle / vxlan, CPU per packet")]
	if by.Met || math.Abs(by.Budget-1/1.15) > 1e-9 || by.Value <= 1 {
		t.Errorf("three times the receiver's CPU time: %+v", by)
	}
	if rate := rep.Budgets[slices.Index(names, "udp: heddle / vxlan")]; !rate.Met || math.Abs(rate.Value-1.2) > 1e-9 {
		t.Errorf("1.2 times the rate: %+v", rate)
	}
}
