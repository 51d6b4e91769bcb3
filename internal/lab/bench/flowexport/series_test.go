package flowexport

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/lab/report"
)

func names(configs []configuration) string {
	var all []string
	for _, c := range configs {
		all = append(all, c.name())
	}
	return strings.Join(all, " ")
}

func TestEveryComparedIntervalLiesBetweenTwoBaselines(t *testing.T) {
	configs := []configuration{{off, true}, {uni, true}, {bi, true}}
	for round, want := range []string{
		"baseline+5k ipfix+5k baseline+5k ipfix-bi+5k baseline+5k ipfix+5k baseline+5k ipfix-bi+5k baseline+5k",
		"baseline+5k ipfix-bi+5k baseline+5k ipfix+5k baseline+5k ipfix-bi+5k baseline+5k ipfix+5k baseline+5k",
	} {
		if got := names(order(configs, round, 2)); got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
	}
}

// seriesOf is a series in which the compared configuration keeps a share of what the machine can do at the time.
func seriesOf(able func(i int) float64, kept float64, configs []configuration, times []int) []taken {
	var all []taken
	for i, cfg := range configs {
		s := sample{rate: able(times[i]), middle: time.Unix(int64(times[i]), 0)}
		if cfg.metering.meters() {
			s.rate *= kept
		}
		all = append(all, taken{cfg, s})
	}
	neighbours(all)
	return all
}

func TestSteadyDriftIsInNoRatio(t *testing.T) {
	configs := order([]configuration{{off, false}, {uni, false}, {bi, false}}, 0, 1)
	drift := func(at int) float64 { return 1e6 + 5e4*float64(at) }
	series := seriesOf(drift, 0.96, configs, []int{0, 3, 4, 9, 11}) // not evenly spaced
	for i, want := range []float64{math.NaN(), 0.96, 1, 0.96, math.NaN()} {
		got := series[i].ratio()
		if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-9 {
			t.Errorf("interval %d, %s: ratio %g, want %g", i, series[i].name(), got, want)
		}
	}
}

func TestANoisyMachineThatDriftsIsResolved(t *testing.T) {
	r := madeUp("udp-18")
	r.samples = map[at][]sample{}
	dice := rand.New(rand.NewPCG(1, 2))
	able := func(i int) float64 { // 20 % up and down, and 2 % of noise
		return 1e6 * (1 + 0.2*math.Sin(float64(i)/15) + 0.02*dice.NormFloat64())
	}
	configs := order([]configuration{{off, false}, {uni, false}}, 0, 40)
	times := make([]int, len(configs))
	for i := range times {
		times[i] = i
	}
	c, metered := r.cells[0], configuration{uni, false}
	r.keep(c, seriesOf(able, 0.97, configs, times))
	for cfg, want := range map[configuration]float64{metered: 0.97, {off, false}: 1} {
		s := r.kept(c, cfg)
		if se := resolution(s); se > 0.01 || math.Abs(s.Median-want) > 3*se {
			t.Errorf("%s: %v ± %g, want %g", cfg.name(), s, se, want)
		}
	}
}

func TestCellsThatAreResolvedAreNotVisitedAgain(t *testing.T) {
	steadily := make([]float64, enoughSamples)
	for i := range steadily {
		steadily[i] = 0.97 + 0.001*float64(i%2)
	}
	few, all := madeUp("udp-18", steadily[1:]...), madeUp("udp-18", steadily...)
	if few.enough(few.cells[0]) || !all.enough(all.cells[0]) {
		t.Errorf("enough: %v of %d, %v of %d", few.enough(few.cells[0]), len(steadily)-1, all.enough(all.cells[0]),
			len(steadily))
	}
	for want, kept := range map[bool]float64{true: 0.99, false: 0.955} { // far from the budget and close to it
		rough := make([]float64, enoughSamples)
		for i := range rough {
			rough[i] = kept + 0.01*float64(i%3-1)
		}
		r := madeUp("udp-18", rough...)
		if e := resolution(r.kept(r.cells[0], configuration{uni, false})); e <= r.opts.Resolution ||
			r.enough(r.cells[0]) != want {
			t.Errorf("ratio %g ± %g: enough is %v", kept, e, !want)
		}
	}
	wild := madeUp("udp-18", 0.8, 0.9, 1, 1.1, 0.8, 0.9, 1, 1.1, 0.97, 0.97)
	if wild.enough(wild.cells[0]) {
		t.Error("ratios from 0.8 to 1.1 are taken to be resolved")
	}
}

func TestVisitsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := madeUp("udp-18", 1)
		c := r.cells[0]
		r.began, r.opts.Limit = time.Now().Add(-10*time.Minute), 15*time.Minute
		for want, last := range map[bool]time.Duration{true: time.Minute, false: 6 * time.Minute} {
			r.visits[c.id()] = visits{1, last}
			if got := r.timeFor(c); got != want {
				t.Errorf("a visit of %v: time is %v", last, got)
			}
			if left := r.left(3, 0); left != 5*time.Minute {
				t.Errorf("%v left of 5 minutes", left)
			}
		}
		delete(r.visits, c.id())
		if r.began = time.Now().Add(-time.Hour); !r.timeFor(c) {
			t.Error("a cell is left out altogether")
		}
	})
}

func TestBudgetsSayWhatIsNotResolved(t *testing.T) {
	for _, tt := range []struct {
		kept       []float64
		met        bool
		unresolved bool
	}{
		{[]float64{0.97, 0.971, 0.97, 0.969, 0.97, 0.971, 0.969, 0.97}, true, false},
		{[]float64{0.90, 0.901, 0.90, 0.899, 0.90, 0.901, 0.899, 0.90}, false, false},
		{[]float64{0.93, 0.97, 0.951, 0.99, 0.91, 0.96, 0.94, 0.955}, true, true},
		{[]float64{0.99}, true, true}, // one interval has no spread
	} {
		b := madeUp("udp-18", tt.kept...).rateBudgets()[0]
		if b.Met != tt.met || b.Unresolved != tt.unresolved {
			t.Errorf("%v: %+v", tt.kept, b)
		}
	}
}

func TestBackgroundsFramesAreMeteredToo(t *testing.T) {
	s := sample{rate: 1e6, took: time.Second}
	s.runs[tx], s.watched[tx] = runs{time: 100 * time.Millisecond}, frames{load: 800_000, all: 1_000_000}
	s.passed[tx], s.agents[tx] = frames{load: 800_000, all: 1_000_000}, 10*time.Millisecond
	c := madeUp("udp-18").cells[0]
	if got := s.cost(c, tx, 1); math.Abs(got.program-0.01) > 1e-9 || math.Abs(got.agent-0.001) > 1e-9 {
		t.Errorf("100 ns a frame are %+v", got)
	}
}

func TestAnotherBaselineIsComparedWhereAskedFor(t *testing.T) {
	o := defaults()
	o.Configurations = []string{"baseline-again"}
	configs, err := o.configurations()
	if err != nil || names(configs) != "baseline baseline-again" {
		t.Errorf("configurations %v, %v", configs, err)
	}
	r := madeUp("udp-18")
	r.configs, r.samples = configs, map[at][]sample{}
	all := order(configs, 0, 10)
	times := make([]int, len(all))
	for i := range times {
		times[i] = i
	}
	r.keep(r.cells[0], seriesOf(func(int) float64 { return 1e6 }, 1, all, times))
	rep := r.report(report.Environment{})
	if len(rep.Budgets) != 0 {
		t.Errorf("budgets without metering: %+v", rep.Budgets)
	}
	if notes := strings.Join(rep.Notes, " "); !strings.Contains(notes,
		"in the place of a metered interval (baseline-again): 1.0000 ± 0.0000") {
		t.Errorf("notes %s", notes)
	}
	if s, _ := rep.Rows[1].Get("ratio_baseline").(report.Spread); s.Median != 1 || s.Rounds != 10 {
		t.Errorf("row %s", fmt.Sprint(rep.Rows[1].Get("ratio_baseline")))
	}
}

func TestRatesAreOfEachPairsOwnTime(t *testing.T) {
	when := time.Unix(0, 0)
	before := []mark{{when, 0, 0}, {when.Add(time.Second / 2), 100, 100}}
	after := []mark{{when.Add(time.Second), 900, 1000}, {when.Add(time.Second), 600, 600}}
	if perSecond, lost := rate(before, after); perSecond != 900+1000 || math.Abs(lost-1.0/15) > 1e-9 {
		t.Errorf("%g per second, %g lost", perSecond, lost)
	}
}

func TestTransactionsAreReadFromTheKernel(t *testing.T) {
	const snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens EstabResets CurrEstab\nTcp: 1 20 19 4\nUdp: " +
		"InDatagrams\nUdp: 7\n"
	if n, err := tcpResets(snmp); err != nil || n != 19 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := tcpResets("Tcp: ActiveOpens\nTcp: 1\n"); err == nil {
		t.Error("what is not counted is 0")
	}
}
