package hostile

import (
	"fmt"
	"math"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// The budgets: the least throughput and the longest round-trip time beside a hostile neighbour, relative to those
// beside a well-behaved one.
const (
	throughputBudget = 0.90
	cpuBudget        = 1.10 // like the throughput, for CPU time per byte
	rttBudget        = 1.10
)

// Report makes the report of the results.
func Report(all []Measured) *report.Report {
	r := &report.Report{Name: Name, Environment: report.Collect(time.Now()),
		Explained: "explanation/hostile-neighbour.md", Labs: topology.OfText(labFile),
		Conclusions: conclusions(all)}
	for i := range all {
		m := &all[i]
		r.Rows = append(r.Rows, m.fields())
		r.Budgets = append(r.Budgets, m.budgets()...)
	}
	r.Notes = []string{
		"throughput, p99: of two VMs, beside a hostile neighbour over beside a well-behaved one that sends frames of " +
			"the same lengths to one receiver, as many as the hostile one at its loudest; what is dropped costs less " +
			"than what is delivered, so that it may not be able to. Ratios of the rounds, in which each of the two " +
			"has two turns.",
		"The victims and the neighbour have a CPU each, and both neighbours keep theirs busy: the difference is the " +
			"work that the switch makes one do for the other. No switch can make up for a machine with too few CPUs.",
		"CPU per byte: of the stream's two ends, with what the kernel does for them; it tells what the neighbour " +
			"costs them also on a machine that does other work. its CPU: the share that the neighbour had. Well " +
			"below 1, others took it: throughput and p99 then tell of them too.",
		fmt.Sprintf("limited: with storm control of %d frames per second of each kind on the neighbour's port, burst "+
			"%v. passed: the neighbour's frames of which other ports got copies.", stormRate, stormBurst),
		fmt.Sprintf("MACs: learned on the neighbour's port, whose limit is %d; lost: entries of other ports, %d of "+
			"them learned, that were gone or moved afterwards.", macLimit, stations),
		"Rows without storm control are not held against the budgets, but for the flood from random sources, which " +
			"the learning limit stops: their storm reaches the victims, as on any switch.",
	}
	return r
}

// conclusions say what the rows show that are held against the budgets.
func conclusions(all []Measured) []string {
	least, most, lost, rows := math.Inf(1), 0.0, 0, 0
	for i := range all {
		m := &all[i]
		lost += m.Lost
		if m.Row.held {
			rows++
			least = min(least, report.Summarise(m.throughput()).Median)
			most = max(most, report.Summarise(m.rtt()).Median)
		}
	}
	if rows == 0 || math.IsInf(least, 1) {
		return nil
	}
	return []string{fmt.Sprintf("Beside a hostile neighbour that the switch holds, two VMs keep at least %s of the "+
		"throughput that they have beside a well-behaved one, and their 99th percentile of the round-trip time is at "+
		"most %s times as long, by the middle of the rounds of %d rows. Of the other ports' addresses %d were lost.",
		report.Ratio.Format(least), report.Ratio.Format(most), rows, lost)}
}

func (m *Measured) throughput() []float64 {
	return report.Ratios(m.Hostile.Throughput, m.Good.Throughput)
}

func (m *Measured) cpu() []float64 { return report.Ratios(m.Hostile.CPU, m.Good.CPU) }

func (m *Measured) rtt() []float64 { return report.Ratios(m.Hostile.RTT, m.Good.RTT) }

func (m *Measured) fields() report.Row {
	return report.Row{
		{Name: "name", Title: "row", Value: m.Row.name},
		{Name: "sent_per_second", Title: "sent", Value: spread(m.Hostile.Sent), Unit: report.PacketsPerSecond,
			Brief: true},
		{Name: "well_behaved_per_second", Title: "well-behaved", Value: spread(m.Good.Sent),
			Unit: report.PacketsPerSecond, Brief: true},
		{Name: "passed_per_second", Title: "passed", Value: spread(m.Hostile.Passed), Unit: report.PacketsPerSecond,
			Brief: true},
		{Name: "stream_bits_per_second", Title: "stream", Value: spread(m.Hostile.Throughput),
			Unit: report.BitsPerSecond, Brief: true},
		{Name: "stream_ratio", Title: "throughput", Value: spread(m.throughput()), Unit: report.Ratio},
		{Name: "stream_cpu_ratio", Title: "CPU per byte", Value: spread(m.cpu()), Unit: report.Ratio, Brief: true},
		{Name: "p99_s", Title: "p99", Value: spread(m.Hostile.RTT), Unit: report.Seconds, Brief: true},
		{Name: "well_behaved_stream_bits_per_second", Value: spread(m.Good.Throughput), Unit: report.BitsPerSecond,
			Hidden: true},
		{Name: "well_behaved_p99_s", Value: spread(m.Good.RTT), Unit: report.Seconds, Hidden: true},
		{Name: "stream_cpu_s_per_gb", Value: spread(m.Hostile.CPU), Unit: report.SecondsPerGB, Hidden: true},
		{Name: "well_behaved_stream_cpu_s_per_gb", Value: spread(m.Good.CPU), Unit: report.SecondsPerGB, Hidden: true},
		{Name: "neighbour_cpu", Title: "its CPU", Value: spread(m.Hostile.Busy), Unit: report.Ratio, Brief: true},
		{Name: "well_behaved_neighbour_cpu", Value: spread(m.Good.Busy), Unit: report.Ratio, Hidden: true},
		{Name: "p99_ratio", Title: "p99 ratio", Value: spread(m.rtt()), Unit: report.Ratio},
		{Name: "macs", Title: "MACs", Value: m.Held, Unit: report.Count},
		{Name: "entries_lost", Title: "lost", Value: m.Lost, Unit: report.Count},
		{Name: "stream_ratios", Value: m.throughput(), Hidden: true},
		{Name: "p99_ratios", Value: m.rtt(), Hidden: true},
	}
}

func (m *Measured) budgets() []report.Budget {
	b := []report.Budget{
		report.Hold(m.Row.name+" MACs learned", float64(m.Held), report.Count, report.AtMost, macLimit),
		report.Hold(m.Row.name+" entries lost", float64(m.Lost), report.Count, report.Exactly, 0),
	}
	if m.Row.bounded {
		b = append(b, report.Hold(m.Row.name+" frames above the rate", float64(m.Over), report.Count, report.Exactly,
			0))
	}
	if m.Row.held {
		b = append(b,
			report.Hold(m.Row.name+" throughput", report.Summarise(m.throughput()).Median, report.Ratio, report.AtLeast,
				throughputBudget),
			report.Hold(m.Row.name+" CPU per byte", report.Summarise(m.cpu()).Median, report.Ratio, report.AtMost,
				cpuBudget),
			report.Hold(m.Row.name+" p99", report.Summarise(m.rtt()).Median, report.Ratio, report.AtMost, rttBudget))
	}
	return b
}

// spread is the spread of the rounds, nil ("not measured") without any.
func spread(rounds []float64) any {
	if len(rounds) == 0 {
		return nil
	}
	return report.Summarise(rounds)
}
