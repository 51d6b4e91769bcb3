package cmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/lab/report"
	"heddle/internal/spec/printable"
)

// Bounds of the report of a benchmark, so that that of a large fleet can be opened.
const (
	// mostDrawn is how many hosts a matrix has: those whose pairs have most faults.
	mostDrawn = 48
	// mostListed is how many pairs the table has: those with faults first.
	mostListed = 500
)

// report is the benchmark as a page: what it found, a matrix of each number from host to host, and the pairs.
func (q *benchmarkFlags) report(b *api.NetworkBenchmark, now time.Time) *report.Report {
	here := report.Collect(now)
	r := &report.Report{Name: "health benchmark", Title: "the network between hosts: every host to every host at once",
		Environment: report.Environment{Date: here.Date, Heddle: here.Heddle, Commit: here.Commit},
		Conclusions: benchmarkLines(b), Plots: []report.Plot{}}
	names, between := drawnHosts(b), pairsBetween(b)
	if len(b.Pairs) > 0 {
		for _, m := range benchmarkNumbers() {
			r.Matrices = append(r.Matrices, m.matrix(names, between))
		}
	}
	pairs := slices.Clone(b.Pairs)
	slices.SortStableFunc(pairs, func(x, y api.BenchmarkPair) int { return len(y.Faults) - len(x.Faults) })
	for _, p := range pairs[:min(len(pairs), mostListed)] {
		r.Rows = append(r.Rows, benchmarkRow(p))
	}
	r.Notes = []string{
		fmt.Sprintf("All hosts sent to all others at the same time for %v, by each uplink that takes part in the "+
			"health check. Each uplink sent and received %sbit/s at most, which the pairs share: these are no figures "+
			"of what the network can carry, but of whether it carries that much between any two hosts. Throughput is "+
			"what arrived, in bits of layer 3; delay is the round-trip time of pings that were sent meanwhile. A "+
			"matrix adds up the pairs of uplinks of two hosts, and has the longest of their delays.", b.Duration,
			scaled(b.Rate)),
		"▲ marks pairs with a fault: no-answer, slow, lossy, late or duplicates. The darker a cell, the greater its " +
			"number among those of its matrix."}
	if n := len(b.Hosts) - len(names); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("The matrices have the %d hosts of %d whose pairs have most faults.",
			len(names), len(b.Hosts)))
	}
	if n := len(pairs) - len(r.Rows); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("The table has %d of %d pairs, those with faults first; -o json has all.",
			len(r.Rows), len(pairs)))
	}
	return r
}

// drawnHosts are the hosts that matrices have, in the order in which they took part.
func drawnHosts(b *api.NetworkBenchmark) []string {
	if len(b.Hosts) <= mostDrawn {
		return b.Hosts
	}
	faults := map[string]int{}
	for _, p := range b.Pairs {
		faults[p.From] += len(p.Faults)
		faults[p.To] += len(p.Faults)
	}
	worst := slices.Clone(b.Hosts)
	slices.SortStableFunc(worst, func(x, y string) int { return faults[y] - faults[x] })
	worst = worst[:mostDrawn]
	return slices.DeleteFunc(slices.Clone(b.Hosts), func(h string) bool { return !slices.Contains(worst, h) })
}

// hostPair are the pairs of uplinks from one host to another.
type hostPair []api.BenchmarkPair

func pairsBetween(b *api.NetworkBenchmark) map[[2]string]hostPair {
	all := map[[2]string]hostPair{}
	for _, p := range b.Pairs {
		k := [2]string{p.From, p.To}
		all[k] = append(all[k], p)
	}
	return all
}

// benchmarkNumber is what one matrix is about.
type benchmarkNumber struct {
	title  string
	of     func(hostPair) (v float64, text string)
	faults []string // that mark a cell
}

func benchmarkNumbers() []benchmarkNumber {
	sum := func(p hostPair, of func(api.BenchmarkPair) uint64) (n uint64) {
		for _, one := range p {
			n += of(one)
		}
		return n
	}
	lost := func(p hostPair) (uint64, uint64) {
		return sum(p, func(p api.BenchmarkPair) uint64 { return p.Lost }),
			sum(p, func(p api.BenchmarkPair) uint64 { return p.Sent })
	}
	return []benchmarkNumber{
		{"Throughput, bit/s", func(p hostPair) (float64, string) {
			n := sum(p, func(p api.BenchmarkPair) uint64 { return p.Throughput })
			return float64(n), scaled(n)
		}, []string{"slow", "no-answer"}},
		{"Frames lost, %", func(p hostPair) (float64, string) {
			n, of := lost(p)
			return float64(n) / float64(max(of, 1)), share(n, of)
		}, []string{"lossy", "no-answer"}},
		{"Delay, 99th percentile of the round-trip time", func(p hostPair) (float64, string) {
			var most time.Duration
			for _, one := range p {
				most = max(most, one.P99)
			}
			return most.Seconds(), took(most)
		}, []string{"late", "no-answer"}},
		{"Duplicates, frames that arrived more than once", func(p hostPair) (float64, string) {
			n := sum(p, func(p api.BenchmarkPair) uint64 { return p.Duplicates })
			return float64(n), fmt.Sprint(n)
		}, []string{"duplicates"}},
	}
}

// matrix is one number from each host to each other one.
func (m benchmarkNumber) matrix(names []string, between map[[2]string]hostPair) report.Matrix {
	out := report.Matrix{Title: m.title, From: "from host", To: "to host", Marked: "a pair with the fault " +
		strings.Join(m.faults, " or ")}
	most := 0.0
	values := map[*report.Cell]float64{}
	for _, from := range names {
		out.Names = append(out.Names, printable.Text(from))
		var row []*report.Cell
		for _, to := range names {
			p := between[[2]string{from, to}]
			if len(p) == 0 {
				row = append(row, nil)
				continue
			}
			v, text := m.of(p)
			cell := &report.Cell{Text: text, Tip: printable.Text(from+" to "+to) + ": " + text, Marked: m.marks(p)}
			if faults := p.faults(); faults != "" {
				cell.Tip += " (" + faults + ")"
			}
			values[cell], most = v, max(most, v)
			row = append(row, cell)
		}
		out.Cells = append(out.Cells, row)
	}
	for cell, v := range values {
		if most > 0 {
			cell.Shade = v / most
		}
	}
	return out
}

// marks reports whether a pair of uplinks has one of the faults.
func (m benchmarkNumber) marks(p hostPair) bool {
	return slices.ContainsFunc(p, func(one api.BenchmarkPair) bool {
		return slices.ContainsFunc(one.Faults, func(f string) bool { return slices.Contains(m.faults, f) })
	})
}

// faults are those of all pairs of uplinks, with the uplinks.
func (p hostPair) faults() string {
	var all []string
	for _, one := range p {
		if len(one.Faults) > 0 {
			all = append(all, printable.Text(one.FromUplink+" to "+one.ToUplink)+": "+strings.Join(one.Faults, ", "))
		}
	}
	return strings.Join(all, "; ")
}

// benchmarkRow is a pair of uplinks in the report's table.
func benchmarkRow(p api.BenchmarkPair) report.Row {
	vlan := "-"
	if p.VLAN > 0 {
		vlan = fmt.Sprint(p.VLAN)
	}
	seconds := func(d time.Duration) any {
		if d == 0 {
			return nil
		}
		return d.Seconds()
	}
	return report.Row{
		{Name: "from", Value: printable.Text(p.From + "/" + p.FromUplink)},
		{Name: "to", Value: printable.Text(p.To + "/" + p.ToUplink)},
		{Name: "vlan", Title: "VLAN", Value: vlan},
		{Name: "sent_bps", Title: "sent", Value: float64(p.Offered), Unit: report.BitsPerSecond},
		{Name: "arrived_bps", Title: "arrived", Value: float64(p.Throughput), Unit: report.BitsPerSecond},
		{Name: "lost", Value: share(p.Lost, p.Sent)},
		{Name: "duplicates", Value: p.Duplicates, Unit: report.Count},
		{Name: "rtt_p50_s", Title: "delay p50", Value: seconds(p.P50), Unit: report.Seconds},
		{Name: "rtt_p99_s", Title: "delay p99", Value: seconds(p.P99), Unit: report.Seconds},
		{Name: "faults", Value: cli.Dash(strings.Join(p.Faults, ", "))},
	}
}
