package flowexport

import (
	"fmt"
	"math"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

const (
	// pointBudget is what metering may take at one observation point for 100,000 packets per second, in cores: 50 ns
	// a packet.
	pointBudget = 0.005
	// transactionBudget is what metering may take on a host for 1,000 transactions per second, in cores: 4 µs each.
	transactionBudget = 0.004
	// scaleBudget is how many times as much a transaction between many pairs may cost as between one.
	scaleBudget = 1.2
)

// costBudgets check, for each configuration, the most expensive cell of packets and that of transactions on either
// host: both hosts have one observation point for each packet.
func (r *run) costBudgets() (budgets []report.Budget) {
	for _, of := range []struct {
		kind   traffic.Kind
		name   string
		budget float64
	}{
		{traffic.KindUDP, "cores per 100 kpps and point", pointBudget},
		{traffic.KindCRR, "cores per 1 k/s and host", transactionBudget},
	} {
		for _, cfg := range r.metered() {
			dearest, where := r.dearest(cfg, of.kind)
			if where == "" {
				continue
			}
			name := fmt.Sprintf("%s: %s, the most (%s)", cfg.name(), of.name, where)
			budgets = append(budgets, report.Hold(name, dearest.Median, report.None, report.AtMost,
				of.budget).Resolve(r.standardError(cfg, dearest)))
		}
	}
	return budgets
}

// dearest is the most that a configuration costs in a cell of a kind on a host, and where; "" without any.
func (r *run) dearest(cfg configuration, kind traffic.Kind) (most report.Spread, where string) {
	most.Median = math.Inf(-1)
	for _, c := range r.cells {
		if c.kind != kind || c.emulated() {
			continue
		}
		for _, h := range sides {
			all, _, _ := r.costs(c, cfg, h)
			if s := report.Summarise(all); s.Rounds > 0 && s.Median > most.Median {
				most, where = s, fmt.Sprintf("%s, %s", c, h)
			}
		}
	}
	return most, where
}

// scaleBudgets check, for each configuration, what metering costs per transaction between many pairs against between
// one, on both hosts together. The article found that it grows, and suspected contention.
func (r *run) scaleBudgets() (budgets []report.Budget) {
	for _, cfg := range r.metered() {
		for _, c := range r.cells {
			one, ok := ofOnePair(r.cells, c)
			if c.kind != traffic.KindCRR || c.pairs == 1 || !ok {
				continue
			}
			name := fmt.Sprintf("%s: cost per transaction of %s, %d pairs / 1 pair", cfg.name(), c.name, c.pairs)
			many, manyErr := r.bothHosts(c, cfg)
			few, fewErr := r.bothHosts(one, cfg)
			value := many / few
			if few <= 0 { // nothing that it could be compared with
				value = math.NaN()
			}
			budgets = append(budgets, report.Hold(name, value, report.Ratio, report.AtMost, scaleBudget).Resolve(
				value*math.Hypot(manyErr/many, fewErr/few)))
		}
	}
	return budgets
}

// ofOnePair is the same load between one pair, if that is measured.
func ofOnePair(all []cell, c cell) (cell, bool) {
	for _, one := range all {
		if one.name == c.name && one.pairs == 1 && one.adapter == c.adapter {
			return one, true
		}
	}
	return cell{}, false
}

// bothHosts is what a configuration costs on both hosts together, and its standard error.
func (r *run) bothHosts(c cell, cfg configuration) (sum, standardError float64) {
	for _, h := range sides {
		all, _, _ := r.costs(c, cfg, h)
		s := report.Summarise(all)
		if s.Rounds == 0 {
			return math.NaN(), math.NaN()
		}
		sum += s.Median
		standardError = math.Hypot(standardError, r.standardError(cfg, s))
	}
	return sum, standardError
}
