package flowexport

import (
	"math"

	"heddle/internal/report"
)

// rates are a cell's in a configuration, by round.
func (r *run) rates(c cell, cfg configuration) []float64 {
	var v []float64
	for _, s := range r.samples[at{c.id(), cfg.name()}] {
		v = append(v, s.rate)
	}
	return v
}

// kept is the part of another configuration's rate, round by round.
func (r *run) kept(c cell, cfg, of configuration) report.Spread {
	return report.Summarise(report.Ratios(r.rates(c, cfg), r.rates(c, of)))
}

// runsPerUnit is how often a host's programs run for a packet, transaction or bit: a property of the load, and so the median of all
// rounds and configurations with the same background, whose frames are in it.
func (r *run) runsPerUnit(c cell, h side, background bool) float64 {
	var v []float64
	for _, m := range []metering{off, uni, bi} {
		for _, s := range r.samples[at{c.id(), configuration{m, background}.name()}] {
			v = append(v, float64(s.runs[h].count)/s.window.Seconds()/s.rate)
		}
	}
	return report.Summarise(v).Median
}

// cost is the CPU time of one host, in cores, for per units per second.
type cost struct {
	program float64 // in the kernel, by its own clock
	agent   float64 // draining, keeping and exporting
}

func (s sample) cost(c cell, h side, runsPerUnit float64) cost {
	perRun := s.runs[h].time.Seconds() / float64(s.runs[h].count)
	return cost{
		program: perRun * runsPerUnit * c.per,
		agent:   s.agents[h].Seconds() / s.took.Seconds() / s.rate * c.per,
	}
}

// costs are what metering took on a host, round by round: what a configuration took beyond its baseline.
func (r *run) costs(c cell, cfg configuration, h side) (all, program, agent []float64) {
	on, without := r.samples[at{c.id(), cfg.name()}], r.samples[at{c.id(), cfg.baseline().name()}]
	k := r.runsPerUnit(c, h, cfg.background)
	for i := range min(len(on), len(without)) {
		a, b := on[i].cost(c, h, k), without[i].cost(c, h, k)
		all = append(all, a.program+a.agent-b.program-b.agent)
		program = append(program, a.program-b.program)
		agent = append(agent, a.agent-b.agent)
	}
	return all, program, agent
}

// machine is what the machine as a whole took beyond the baseline, in cores for per units per second: both hosts, their VMs and the
// collectors.
func (r *run) machine(c cell, cfg configuration) (v []float64) {
	on, without := r.samples[at{c.id(), cfg.name()}], r.samples[at{c.id(), cfg.baseline().name()}]
	took := func(s sample) float64 { return s.machine.Seconds() / s.took.Seconds() / s.rate * c.per }
	for i := range min(len(on), len(without)) {
		v = append(v, took(on[i])-took(without[i]))
	}
	return v
}

// exports is the rate of records that a host exported, by round, and the part of a core that its agent took.
func (r *run) exports(c cell, cfg configuration, h side) (records, agent []float64) {
	for _, s := range r.samples[at{c.id(), cfg.name()}] {
		records = append(records, float64(s.records[h])/s.took.Seconds())
		agent = append(agent, s.agents[h].Seconds()/s.took.Seconds())
	}
	return records, agent
}

// keepsUp is the part of the flows ending in the measured intervals that as many records were exported in them, on the host where it is
// less; NaN where flows do not end. Where it is below 1 the agent did not get the CPU it needs: that work is in no rate then.
func (r *run) keepsUp(c cell, cfg configuration) float64 {
	if !c.endsFlows() || cfg.metering == off {
		return math.NaN()
	}
	perTransaction := 2.0 // one record for each direction
	if cfg.metering == bi {
		perTransaction = 1
	}
	least := math.Inf(1)
	for _, h := range sides {
		records, _ := r.exports(c, cfg, h)
		least = min(least, report.Summarise(records).Median/perTransaction/report.Summarise(r.rates(c, cfg)).Median)
	}
	return least
}

// perRun is the programs' time per run on a host, in seconds, by round.
func (r *run) perRun(c cell, cfg configuration, h side) (v []float64) {
	for _, s := range r.samples[at{c.id(), cfg.name()}] {
		v = append(v, s.runs[h].time.Seconds()/float64(s.runs[h].count))
	}
	return v
}

// resolution is the standard error of the median of samples that lie about it as a normal distribution does, of the distance of the
// quartiles: 1.253 σ/√n and σ = 0.741 (q3 − q1).
func resolution(s report.Spread) float64 {
	if s.Rounds == 0 {
		return math.NaN()
	}
	return 1.253 * 0.741 * (s.Q3 - s.Q1) / math.Sqrt(float64(s.Rounds))
}
