package flowexport

import (
	"math"
	"time"

	"heddle/internal/lab/report"
)

// taken is a sample of a series.
type taken struct {
	configuration
	sample
}

// order is the order of a series: a baseline, and after each of the compared configurations another baseline, turns
// times. configs begins with the baseline; each round begins with another one of the others.
func order(configs []configuration, round, turns int) []configuration {
	baseline, compared := configs[0], configs[1:]
	all := []configuration{baseline}
	for i := range turns * len(compared) {
		all = append(all, compared[(i+round)%len(compared)], baseline)
	}
	return all
}

// neighbours sets the baselines before and after each sample of a series. Samples at the ends have none on one side.
func neighbours(series []taken) {
	for i := range series {
		for k := i - 1; k >= 0 && series[i].before == nil; k-- {
			if series[k].metering == off {
				series[i].before = &series[k].sample
			}
		}
		for k := i + 1; k < len(series) && series[i].after == nil; k++ {
			if series[k].metering == off {
				series[i].after = &series[k].sample
			}
		}
	}
}

// there is a value that the neighbouring baselines give for the time of a sample: on the line through both. So a
// machine that slows down or recovers steadily affects both sides of a comparison. NaN for a sample without both
// neighbours.
func (s sample) there(value func(sample) float64) float64 {
	if s.before == nil || s.after == nil {
		return math.NaN()
	}
	apart := s.after.middle.Sub(s.before.middle)
	if apart <= 0 {
		return math.NaN()
	}
	part := float64(s.middle.Sub(s.before.middle)) / float64(apart)
	return value(*s.before)*(1-part) + value(*s.after)*part
}

// ratio is the sample's rate relative to that of the neighbouring baselines; NaN if one of these has a rate of zero.
func (s sample) ratio() float64 {
	if s.before == nil || s.after == nil || s.before.rate <= 0 || s.after.rate <= 0 {
		return math.NaN()
	}
	return s.rate / s.there(sample.theRate)
}

func (s sample) theRate() float64 { return s.rate }

// beyond is by how much a value of a sample exceeds that of the neighbouring baselines.
func (s sample) beyond(value func(sample) float64) float64 { return value(s) - s.there(value) }

// each is a value of every sample of a cell in a configuration; samples without it are left out.
func (r *run) each(c cell, cfg configuration, value func(sample) float64) (all []float64) {
	for _, s := range r.samples[at{c.id(), cfg.name()}] {
		if v := value(s); !math.IsNaN(v) && !math.IsInf(v, 0) {
			all = append(all, v)
		}
	}
	return all
}

// resolution is the standard error of the median of normally distributed samples, computed from the distance of the
// quartiles: 1.253 σ/√n, and q3 − q1 = 1.349 σ. With few samples the quartiles are closer together, by some 1.2/n.
func resolution(s report.Spread) float64 {
	if s.Rounds < 2 {
		return math.NaN()
	}
	n := float64(s.Rounds)
	return 1.253 / math.Sqrt(n) * (s.Q3 - s.Q1) / (1.349 * (1 - 1.2/n))
}

// shared is the factor by which an error grows if neighbouring samples share a baseline, which contributes a third of
// the variance of both: 1/6 of it is common to each two, √(1 + 2/6).
const shared = 1.155

// standardError is the standard error of a median of comparisons. If only one configuration is compared, neighbouring
// samples share their baselines.
func (r *run) standardError(cfg configuration, s report.Spread) float64 {
	if cfg.metering != off && len(r.with(cfg.background)) == 2 {
		return shared * resolution(s)
	}
	return resolution(s)
}

// enough reports whether a cell has been measured so often that all of its comparisons are resolved.
func (r *run) enough(c cell) bool {
	if r.opts.Resolution <= 0 {
		return false
	}
	for _, cfg := range r.compared() {
		if !r.resolved(c, cfg) {
			return false
		}
	}
	return true
}

const (
	// enoughSamples is how many samples are needed for a reliable spread.
	enoughSamples = 6
	// If a ratio is known to roughEnough and is clearSteps standard errors away from its budget, the verdict is
	// clear. A single test needs two; a test that is repeated until it gives a clear result must require more.
	roughEnough = 0.01
	clearSteps  = 3
)

func (r *run) resolved(c cell, cfg configuration) bool {
	s := r.kept(c, cfg)
	e := r.standardError(cfg, s)
	switch {
	case s.Rounds < enoughSamples || math.IsNaN(e):
		return false
	case e <= r.opts.Resolution:
		return true
	}
	return cfg.metering.meters() && e <= roughEnough && math.Abs(s.Median-c.atLeast) >= clearSteps*e
}

// timeFor reports whether another visit to the cell would end in time.
func (r *run) timeFor(c cell) bool {
	v := r.visits[c.id()]
	return v.count == 0 || r.opts.Limit <= 0 || time.Since(r.began)+v.last <= r.opts.Limit
}

// visits are how often a cell was measured, and how long that took the last time.
type visits struct {
	count int
	last  time.Duration
}

// expected is how long the next visit to a cell takes: as long as the last one or, without one, the sum of its parts.
func (r *run) expected(c cell) (d time.Duration) {
	if v := r.visits[c.id()]; v.count > 0 {
		return v.last
	}
	const around = 400 * time.Millisecond // for the work around a change of metering
	for _, background := range []bool{false, true} {
		configs := r.with(background)
		if len(configs) == 0 {
			continue
		}
		for _, cfg := range order(configs, 0, c.turns(r.opts)) {
			warmup, duration := c.times(r.opts, cfg)
			d += around + warmup + duration
		}
	}
	return d
}

// left is how long the run takes at most from now on.
func (r *run) left(round, index int) (d time.Duration) {
	for i := range r.cells {
		c := r.cells[(i+round)%len(r.cells)]
		visits := r.opts.Rounds - round
		if i < index {
			visits--
		}
		if !r.enough(c) {
			d += time.Duration(visits) * r.expected(c)
		}
	}
	if r.opts.Limit > 0 {
		d = min(d, max(0, r.opts.Limit-time.Since(r.began)))
	}
	return d
}
