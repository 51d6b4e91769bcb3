package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit"
)

// fakeRun is a benchmark without a kernel: speed says how fast each peer is in a round, relative to 1000.
func fakeRun(rounds int, speed func(peer string, round int) float64, order *[]string, names ...string) *run {
	r := &run{
		comparison: switches(),
		opts:       SwitchOptions{Rounds: rounds, Duration: time.Second, CPUs: []int{0, 1}},
		samples:    map[cell][]traffic.Result{},
	}
	peerOf := map[netip.Addr]string{}
	done := map[string]int{}
	for i, n := range names {
		addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		peerOf[addr] = n
		r.chosen = append(r.chosen, Peer{Name: n})
		r.paths = append(r.paths, &path{a: &guest{}, b: &guest{addr: addr}, far: &guest{addr: addr}})
	}
	r.opts.measure = func(_ context.Context, p traffic.Pair, l traffic.Load) (traffic.Result, error) {
		name := peerOf[p.Addr]
		key := name + string(l.Kind)
		x := 1000 * speed(name, done[key])
		done[key]++
		*order = append(*order, fmt.Sprintf("%s/%s", l.Kind, name))
		return traffic.Result{
			Stream:       &traffic.Stream{BitsPerSecond: x, Bytes: 4e9, CPUSeconds: 1},
			Transactions: &traffic.Transactions{PerSecond: x, Count: 1e6, CPUSeconds: 0.5},
			Sent:         &traffic.Sent{Seconds: 1, Packets: 2e6, CPUSeconds: 0.5},
			Sink: &traffic.SinkResult{Bytes: 2e9, CPUSeconds: 0.5,
				Packets: &traffic.Received{Received: uint64(x)}},
		}, nil
	}
	return r
}

func TestVerdictsComeFromPairedRatios(t *testing.T) {
	// The machine gets slower from round to round, for all alike; Heddle is 5 % below direct and the bridge at half.
	factor := map[string]float64{peerDirect: 1, peerHeddle: 0.95, peerBridge: 0.5}
	var order []string
	r := fakeRun(10, func(peer string, round int) float64 { return factor[peer] * float64(20-round) }, &order,
		peerDirect, peerHeddle, peerBridge)
	if err := r.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep := r.report(report.Environment{})
	if len(rep.Rows) != 12 || len(rep.Budgets) != 6 {
		t.Fatalf("%d rows and %d budgets, want 12 and 6", len(rep.Rows), len(rep.Budgets))
	}
	for _, b := range rep.Budgets {
		want := 0.95
		if strings.HasSuffix(b.Name, peerBridge) {
			want = 1.9
		}
		if math.Abs(b.Value-want) > 1e-9 || !b.Met {
			t.Errorf("%+v, want value %g, met", b, want)
		}
	}
	if s := rep.Rows[1].Get("ratio_direct").(report.Spread); s.Rounds != 10 || s.Max-s.Min > 1e-9 {
		t.Errorf("what slows both sides of a pair shows in the ratio: %+v", s)
	}
	if s := rep.Rows[0].Get("cpu_s").(report.Spread); s.Median != 0.5 {
		t.Errorf("1 s per 4 GB at the sender and 0.5 s per 2 GB at the sink make %g s per GB, want 0.5", s.Median)
	}
	if v := rep.Rows[0].Get("samples").([]float64); len(v) != 10 || v[0] != 20_000 {
		t.Errorf("samples %v", v)
	}
}

func TestMissedBudgetIsMissed(t *testing.T) {
	var order []string
	r := fakeRun(3, func(peer string, _ int) float64 {
		return map[string]float64{peerDirect: 1, peerHeddle: 0.93}[peer]
	}, &order, peerDirect, peerHeddle)
	if err := r.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep := r.report(report.Environment{})
	err := rep.Check()
	if !errors.Is(err, report.ErrBudget) || !strings.Contains(err.Error(), "stream: heddle / direct is 0.930") ||
		strings.Contains(err.Error(), "crr") {
		t.Errorf("Check = %v", err)
	}
	if len(rep.Budgets) != 4 {
		t.Errorf("budgets against a bridge that was not measured: %+v", rep.Budgets)
	}
}

func TestOrderRotatesAndTestsStayTogether(t *testing.T) {
	var order []string
	r := fakeRun(3, func(string, int) float64 { return 1 }, &order, "x", "y", "z")
	if err := r.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	firsts := map[string]int{}
	for group := range slices.Chunk(order, 3) {
		kind, first, _ := strings.Cut(group[0], "/")
		if kind == string(traffic.KindStream) {
			firsts[first]++
		}
		for _, g := range group {
			if !strings.HasPrefix(g, kind+"/") {
				t.Errorf("a round of one test is interrupted: %v", group)
			}
		}
	}
	if firsts["x"] != 1 || firsts["y"] != 1 || firsts["z"] != 1 {
		t.Errorf("in three rounds of stream, first was %v", firsts)
	}
}

func TestMeasuringErrorsSayWhere(t *testing.T) {
	var order []string
	r := fakeRun(2, nil, &order, "x")
	boom := errors.New("boom")
	r.opts.measure = func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error) {
		return traffic.Result{}, boom
	}
	if err := r.measure(t.Context()); !errors.Is(err, boom) ||
		!strings.Contains(err.Error(), "round 1, stream over x") {
		t.Errorf("measure = %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := SwitchOptions{Rounds: 1, Duration: time.Second, Now: time.Now}
	for name, spoil := range map[string]func(*SwitchOptions){
		"no peer \"fddi\"": func(o *SwitchOptions) { o.Only = []string{"fddi"} },
		"positive":         func(o *SwitchOptions) { o.Rounds = 0 },
		"want two":         func(o *SwitchOptions) { o.CPUs = []int{0} },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			spoil(&o)
			if _, err := Switch(t.Context(), o); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("want an error with %q, got %v", name, err)
			}
		})
	}
}

func TestUnavailablePeersAreLeftOutUnlessAskedFor(t *testing.T) {
	testkit.Root(t)
	t.Setenv("TMPDIR", t.TempDir())
	lacking := Peer{"token-ring", func(context.Context, *path) error {
		return fmt.Errorf("%w: no card", errUnavailable)
	}}
	r := &run{}
	if err := r.open(t.Context(), []Peer{lacking}); err != nil || len(r.notes) != 1 || len(r.chosen) != 0 {
		t.Errorf("open = %v, notes %q", err, r.notes)
	}
	r = &run{opts: SwitchOptions{Only: []string{"token-ring"}}}
	if err := r.open(t.Context(), []Peer{lacking}); !errors.Is(err, errUnavailable) {
		t.Errorf("open = %v", err)
	}
	leftNothing(t)
}

// leftNothing checks that no namespace or directory of this process is left.
func leftNothing(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{
		filepath.Join(filepath.Dir((&netns.NS{Name: "x"}).Path()), fmt.Sprintf("hb%d-*", os.Getpid())),
		filepath.Join(os.TempDir(), "hb-*"),
	} {
		left, err := filepath.Glob(pattern)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

// TestEveryPeerCarriesTraffic measures, for a moment, each way to join guests that this machine has.
func TestEveryPeerCarriesTraffic(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	t.Setenv("TMPDIR", t.TempDir())
	for _, name := range PeerNames() {
		t.Run(name, func(t *testing.T) {
			opts := SwitchOptions{
				Rounds: 1, Warmup: 10 * time.Millisecond, Duration: 50 * time.Millisecond, Now: time.Now,
				Only: []string{name}, Heddle: heddleProgram(t), measure: traffic.Measure,
			}
			silent := []string{""} // on a busy machine it takes longer
			for ; len(silent) > 0 && opts.Duration < time.Minute; opts.Duration *= 4 {
				rep, err := Switch(t.Context(), opts)
				if errors.Is(err, errUnavailable) {
					t.Skipf("missing requirement: %v", err)
				}
				switch {
				case err == nil:
					silent = silentRows(rep)
				case !errors.Is(err, traffic.ErrNoTransaction):
					t.Fatal(err)
				}
			}
			for _, test := range silent {
				t.Errorf("%s over %s carries nothing", test, name)
			}
			leftNothing(t)
		})
	}
}

// silentRows are the tests of a report in which nothing was carried.
func silentRows(rep *report.Report) (tests []string) {
	for _, row := range rep.Rows {
		if s := row.Get("value").(report.Spread); s.Rounds != 1 || s.Median <= 0 {
			tests = append(tests, fmt.Sprint(row.Get("test")))
		}
	}
	return tests
}

func TestCancelLeavesNothing(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts := SwitchOptions{
		Rounds: 1000, Duration: time.Hour, Now: time.Now, Only: []string{peerDirect, peerHeddle},
		Heddle: heddleProgram(t), measure: traffic.Measure,
		Progress: func(done, total int, _ string) {
			if total != 8000 || done != 0 {
				t.Errorf("progress %d of %d", done, total)
			}
			time.AfterFunc(50*time.Millisecond, cancel)
		},
	}
	if _, err := Switch(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("Switch = %v", err)
	}
	leftNothing(t)
}

func TestCleanupGoesBackwardsAndOnAfterErrors(t *testing.T) {
	var c cleanup
	var order []int
	boom := errors.New("boom")
	for i := range 3 {
		c.add(func() error {
			order = append(order, i)
			if i == 1 {
				return boom
			}
			return nil
		})
	}
	if err := c.run(); !errors.Is(err, boom) || !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("run = %v, order %v", err, order)
	}
	if err := c.run(); err != nil || len(order) != 3 {
		t.Errorf("second run = %v, order %v", err, order)
	}
}

// heddleProgram is the command line of the program under test: this test binary, which TestMain makes behave like it.
func heddleProgram(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(AsProgram, "1")
	return []string{self}
}
