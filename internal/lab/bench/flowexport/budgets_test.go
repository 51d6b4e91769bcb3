package flowexport

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/report"
)

// TestTransactionsHaveBudgetsOfTheirOwn: metering of transactions is held against cores per 1,000 of them a second, and
// between many pairs against between one.
func TestTransactionsHaveBudgetsOfTheirOwn(t *testing.T) {
	r := madeUp("crr-4", 1, 1, 1)
	one := r.cells[0]
	many := cell{load: one.load, pairs: manyPairs}
	r.cells = append(r.cells, many)
	for _, name := range []string{"baseline", "ipfix"} {
		list := slices.Clone(r.samples[at{one.id(), name}])
		for i := range list {
			if name == "ipfix" { // 30 ns more of each of two runs instead of 20
				for h := range sides {
					list[i].runs[h].time = list[i].runs[h].time * 26 / 24
				}
			}
		}
		r.samples[at{many.id(), name}] = list
	}
	budget := func(part string) report.Budget {
		t.Helper()
		for _, b := range r.report(report.Environment{}).Budgets {
			if strings.Contains(b.Name, part) {
				return b
			}
		}
		t.Fatalf("no budget %q", part)
		return report.Budget{}
	}
	// A transaction is a frame here: 60 ns of programs and 10 of the agent for each, 1,000 times.
	cost := budget("cores per 1 k/s and host")
	if math.Abs(cost.Value-0.00007) > 1e-9 || !cost.Met || !strings.Contains(cost.Name, "8 pairs") {
		t.Errorf("%+v", cost)
	}
	// Between one pair it is 40 and 10 ns.
	if scale := budget("8 pairs / 1 pair"); math.Abs(scale.Value-1.4) > 1e-6 || scale.Met {
		t.Errorf("%+v", scale)
	}
	for i := range r.samples[at{one.id(), "ipfix"}] {
		r.samples[at{one.id(), "ipfix"}][i].agents = [len(sides)]time.Duration{5 * time.Second, 5 * time.Second}
	}
	if cost := budget("cores per 1 k/s and host"); cost.Met || math.Abs(cost.Value-0.005038) > 1e-6 {
		t.Errorf("5 s of agents for a million: %+v", cost)
	}
}
