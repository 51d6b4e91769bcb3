package bench

import (
	"fmt"
	"strings"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// switchBudget is the least ratio of a test against a peer (docs/reference/benchmarks.md): the median of the rounds'
// ratios.
type switchBudget struct {
	test, against string
	atLeast       float64
	// cpuToo: the CPU time may be at most the reciprocal.
	cpuToo bool
}

func switchBudgets() []switchBudget {
	return []switchBudget{
		{test: "stream", against: peerDirect, atLeast: 0.95}, {test: "rr", against: peerDirect, atLeast: 0.92},
		{test: "crr", against: peerDirect, atLeast: 0.92}, {test: "udp", against: peerDirect, atLeast: 0.90},
		{test: "crr", against: peerBridge, atLeast: 1.15}, {test: "udp", against: peerBridge, atLeast: 1.25},
	}
}

// both is the CPU time of both ends together.
func (t test) both(s traffic.Result) float64 {
	sender, sink := t.cpu(s)
	return sender + sink
}

// of reads one number from each sample of a cell, in the order of the rounds.
func (r *run) of(t test, peer string, read func(traffic.Result) float64) []float64 {
	var v []float64
	for _, s := range r.samples[cell{t.name, peer}] {
		v = append(v, read(s))
	}
	return v
}

// ratio compares two peers round by round.
func (r *run) ratio(t test, peer, to string) report.Spread {
	return report.Summarise(report.Ratios(r.of(t, peer, t.value), r.of(t, to, t.value)))
}

// cpuRatio compares the CPU times of two peers round by round.
func (r *run) cpuRatio(t test, peer, to string) report.Spread {
	return report.Summarise(report.Ratios(r.of(t, peer, t.both), r.of(t, to, t.both)))
}

func (r *run) report(env report.Environment) *report.Report {
	rep := &report.Report{Name: r.name, Environment: env, Notes: r.notes}
	for _, t := range r.tests {
		for _, p := range r.chosen {
			rep.Rows = append(rep.Rows, r.row(t, p.Name))
		}
	}
	for _, b := range r.budgets {
		for _, t := range r.tests {
			if t.name == b.test {
				rep.Budgets = append(rep.Budgets, r.holds(t, b)...)
			}
		}
	}
	rep.Notes = append(rep.Notes, r.method())
	return rep
}

// holds judges a budget, by rate and, where it counts too, by CPU time; by nothing when one of the two was not
// measured.
func (r *run) holds(t test, b switchBudget) (held []report.Budget) {
	of := fmt.Sprintf("%s: %s / %s", b.test, peerHeddle, b.against)
	if s := r.ratio(t, peerHeddle, b.against); s.Rounds > 0 {
		held = append(held, report.Hold(of, s.Median, report.Ratio, report.AtLeast, b.atLeast))
	}
	if s := r.cpuRatio(t, peerHeddle, b.against); s.Rounds > 0 && b.cpuToo {
		held = append(held, report.Hold(of+", CPU per "+t.cpuUnit, s.Median, report.Ratio, report.AtMost, 1/b.atLeast))
	}
	return held
}

// row is one test on one peer: its number, and how it compares.
func (r *run) row(t test, peer string) report.Row {
	values := r.of(t, peer, t.value)
	row := report.Row{
		{Name: "test", Value: t.name},
		{Name: "peer", Value: peer},
		{Name: "unit", Value: string(t.unit), Hidden: true},
		{Name: "value", Title: "median (quartiles)", Value: report.Summarise(values), Unit: t.unit},
	}
	for _, to := range r.to {
		row = append(row, report.Field{Name: "ratio_" + to, Title: "of " + to, Value: r.ratio(t, peer, to),
			Unit: report.Ratio})
	}
	row = append(row, r.cpuFields(t, peer)...)
	row = append(row, r.details(t, peer)...)
	return append(row, report.Field{Name: "samples", Value: values, Hidden: true})
}

// cpuFields are the CPU time per unit of the test: of both ends together, of each, and compared with direct.
func (r *run) cpuFields(t test, peer string) []report.Field {
	sender := func(s traffic.Result) float64 { x, _ := t.cpu(s); return x }
	sink := func(s traffic.Result) float64 { _, x := t.cpu(s); return x }
	return []report.Field{
		{Name: "cpu_s", Title: "CPU", Value: report.Summarise(r.of(t, peer, t.both)), Unit: report.Seconds,
			Brief: true},
		{Name: "cpu_per", Value: t.cpuUnit, Hidden: true},
		{Name: "cpu_s_sender", Value: report.Summarise(r.of(t, peer, sender)), Unit: report.Seconds, Hidden: true},
		{Name: "cpu_s_sink", Value: report.Summarise(r.of(t, peer, sink)), Unit: report.Seconds, Hidden: true},
		{Name: "cpu_ratio_" + r.to[0], Value: r.cpuRatio(t, peer, r.to[0]), Unit: report.Ratio, Hidden: true},
	}
}

// details are the medians of a test's other values.
func (r *run) details(t test, peer string) []report.Field {
	median := func(name string, unit report.Unit, of func(traffic.Result) float64) report.Field {
		return report.Field{Name: name, Value: report.Summarise(r.of(t, peer, of)).Median, Unit: unit, Hidden: true}
	}
	switch t.kind {
	case traffic.KindStream:
		return []report.Field{
			median("retransmits", report.Count, func(s traffic.Result) float64 {
				return float64(s.Stream.Retransmits)
			}),
		}
	case traffic.KindUDP:
		return []report.Field{
			median("sent_pps", report.PacketsPerSecond, func(s traffic.Result) float64 {
				return s.Sent.PacketsPerSecond
			}),
			median("lost", report.Count, func(s traffic.Result) float64 { return float64(s.Sink.Packets.Lost) }),
		}
	}
	return []report.Field{
		median("latency_p50_s", report.Seconds, func(s traffic.Result) float64 { return s.Transactions.Latency.P50 }),
		median("latency_p99_s", report.Seconds, func(s traffic.Result) float64 { return s.Transactions.Latency.P99 }),
	}
}

// method says how it was measured.
func (r *run) method() string {
	var apart, together []string
	for _, t := range r.tests {
		if t.apart {
			apart = append(apart, t.name)
		} else {
			together = append(together, t.name)
		}
	}
	return fmt.Sprintf("%d interleaved rounds of %v per cell after %v of warm-up. Ratios are medians (quartiles) of "+
		"the rounds' "+
		"ratios. The sender ran on CPU %d, the receiver of %s on CPU %d, of %s on the sender's. udp is what arrived "+
		"of packets with "+
		"18 bytes of payload; rr and crr exchange 1 byte. CPU is the time both ends took, with what the kernel does "+
		"for them, per GB, "+
		"transaction or packet.", r.opts.Rounds, r.opts.Duration, r.opts.Warmup, r.opts.CPUs[0],
		strings.Join(apart, " and "), r.opts.CPUs[1], strings.Join(together, " and "))
}
