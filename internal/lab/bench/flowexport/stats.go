package flowexport

import (
	"math"

	"heddle/internal/lab/report"
)

// rates are the rates of a cell in a configuration, in the order in which they were measured.
func (r *run) rates(c cell, cfg configuration) []float64 { return r.each(c, cfg, sample.theRate) }

// kept is the share of the neighbouring baselines' rate that a configuration reaches; for a baseline it is 1, apart
// from what the machine does by itself.
func (r *run) kept(c cell, cfg configuration) report.Spread {
	return report.Summarise(r.each(c, cfg, sample.ratio))
}

// keptOfPlain is the same share, relative to the median of the same round's baselines without background.
func (r *run) keptOfPlain(c cell, cfg configuration) report.Spread {
	plain := map[int][]float64{}
	for _, s := range r.samples[at{c.id(), configuration{off, false}.name()}] {
		plain[s.round] = append(plain[s.round], s.rate)
	}
	return report.Summarise(r.each(c, cfg, func(s sample) float64 {
		of := report.Summarise(plain[s.round])
		if of.Rounds == 0 {
			return math.NaN()
		}
		return s.rate / of.Median
	}))
}

// framesPerUnit is how many frames of the load pass at the VMs of a host per packet, transaction or bit. It is a
// property of the load, so this is the median of all intervals.
func (r *run) framesPerUnit(c cell, h side) float64 {
	var v []float64
	for _, cfg := range r.configs {
		v = append(v, r.each(c, cfg, func(s sample) float64 {
			return float64(s.passed[h].load) / s.took.Seconds() / s.rate
		})...)
	}
	return report.Summarise(v).Median
}

// cost is the CPU time of one host, in cores, for per units per second. All frames that pass at the host's VMs are
// metered, including the background's, so it is divided among all of them.
type cost struct {
	program float64 // in the kernel, by its own clock
	agent   float64 // draining, keeping and exporting
}

func (s sample) cost(c cell, h side, framesPerUnit float64) cost {
	return cost{
		program: s.runs[h].time.Seconds() / float64(s.watched[h].all) * framesPerUnit * c.per,
		agent:   s.agents[h].Seconds() / float64(s.passed[h].all) * framesPerUnit * c.per,
	}
}

// costs are the cost of metering on a host: by how much a configuration exceeds the neighbouring baselines.
func (r *run) costs(c cell, cfg configuration, h side) (all, program, agent []float64) {
	k := r.framesPerUnit(c, h)
	beyond := func(part func(cost) float64) []float64 {
		return r.each(c, cfg, func(s sample) float64 {
			return s.beyond(func(s sample) float64 { return part(s.cost(c, h, k)) })
		})
	}
	return beyond(func(x cost) float64 { return x.program + x.agent }),
		beyond(func(x cost) float64 { return x.program }), beyond(func(x cost) float64 { return x.agent })
}

// machine is by how much the whole machine exceeds the baselines, in cores for per units per second: both hosts, their
// VMs and the collectors.
func (r *run) machine(c cell, cfg configuration) []float64 {
	return r.each(c, cfg, func(s sample) float64 { return c.per * s.beyond(sample.machinePerUnit) })
}

// machinePerUnit is the CPU time of the whole machine per packet, transaction or bit, in seconds.
func (s sample) machinePerUnit() float64 { return s.machine.Seconds() / s.took.Seconds() / s.rate }

// cpuRatio is that CPU time relative to what the neighbouring baselines took.
func (r *run) cpuRatio(c cell, cfg configuration) report.Spread {
	return report.Summarise(r.each(c, cfg, func(s sample) float64 {
		return s.machinePerUnit() / s.there(sample.machinePerUnit)
	}))
}

// exports is the rate at which a host exported records, by round, and the share of a core that its agent used.
func (r *run) exports(c cell, cfg configuration, h side) (records, agent []float64) {
	for _, s := range r.samples[at{c.id(), cfg.name()}] {
		records = append(records, float64(s.records[h])/s.took.Seconds())
		agent = append(agent, s.agents[h].Seconds()/s.took.Seconds())
	}
	return records, agent
}

// keepsUp is the ratio of records exported in the measured intervals to flows that ended in them, for the host where it
// is lower; NaN if flows do not end. Below 1 the agent did not get the CPU time it needs: then no rate includes that
// work.
func (r *run) keepsUp(c cell, cfg configuration) float64 {
	if !c.endsFlows() || !cfg.metering.meters() {
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
