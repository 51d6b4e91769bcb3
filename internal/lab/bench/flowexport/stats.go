package flowexport

import (
	"math"

	"heddle/internal/lab/report"
)

// rates are a cell's in a configuration, in the order they were measured.
func (r *run) rates(c cell, cfg configuration) []float64 { return r.each(c, cfg, sample.theRate) }

// kept is the part of the rate of the baselines next to it that a configuration keeps; that of a baseline is 1 but for
// what the machine does by itself.
func (r *run) kept(c cell, cfg configuration) report.Spread {
	return report.Summarise(r.each(c, cfg, sample.ratio))
}

// keptOfPlain is the part of the baseline without anything in the background, as the median of the same round.
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

// framesPerUnit is how many frames of the load pass at the VMs of a host for a packet, transaction or bit: a property
// of the load, and so the median of all intervals.
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
// metered, those of the background too, and so it is shared out among all of them.
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

// costs are what metering took on a host: what a configuration took beyond the baselines next to it.
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

// machine is what the machine as a whole took beyond the baselines, in cores for per units per second: both hosts,
// their VMs and the collectors.
func (r *run) machine(c cell, cfg configuration) []float64 {
	return r.each(c, cfg, func(s sample) float64 {
		return s.beyond(func(s sample) float64 { return s.machine.Seconds() / s.took.Seconds() / s.rate * c.per })
	})
}

// exports is the rate of records that a host exported, by round, and the part of a core that its agent took.
func (r *run) exports(c cell, cfg configuration, h side) (records, agent []float64) {
	for _, s := range r.samples[at{c.id(), cfg.name()}] {
		records = append(records, float64(s.records[h])/s.took.Seconds())
		agent = append(agent, s.agents[h].Seconds()/s.took.Seconds())
	}
	return records, agent
}

// keepsUp is the part of the flows ending in the measured intervals that as many records were exported in them, on the
// host where it is less; NaN where flows do not end. Where it is below 1 the agent did not get the CPU it needs: that
// work is in no rate then.
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
