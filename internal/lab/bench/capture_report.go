package bench

import (
	"fmt"
	"os"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// of reads one number of a test in a state, round by round.
func (r *captureRun) of(t test, state string, read func(traffic.Result) float64) []float64 {
	var v []float64
	for _, m := range r.rounds {
		v = append(v, read(m.samples[cell{t.name, state}]))
	}
	return v
}

// report makes the rows of the guests' traffic, of the program alone, and of the results.
func (r *captureRun) report(env report.Environment) *report.Report {
	rep := &report.Report{Name: "bench capture", Environment: env}
	for _, t := range r.tests {
		for _, s := range guestStates() {
			rep.Rows = append(rep.Rows, r.row(t, s, r.lost(s.name)))
		}
	}
	rep.Rows = append(rep.Rows, r.programRows()...)
	rep.Rows = append(rep.Rows, r.costRows()...)
	rep.Rows = append(rep.Rows, r.tunnelRows()...)
	rep.Budgets = r.tunnelBudgets()
	rep.Notes = append(rep.Notes, r.method(env.CPUs))
	return rep
}

// row is one test in one state: its number, what it cost, and how that compares.
func (r *captureRun) row(t test, s captureState, lost []float64) report.Row {
	// What a unit of the test cost both ends: this is stable also on a machine that does other work, unlike rates.
	cpu := func(res traffic.Result) float64 { x, y := t.cpu(res); return x + y }
	compare := func(read func(traffic.Result) float64) report.Spread {
		return report.Summarise(report.Ratios(r.of(t, s.name, read), r.of(t, captureOff, read)))
	}
	row := report.Row{
		{Name: "test", Value: t.name},
		{Name: "capture", Value: s.name},
		{Name: "unit", Value: string(t.unit), Hidden: true},
		{Name: "value", Title: "median (quartiles)", Value: report.Summarise(r.of(t, s.name, t.value)), Unit: t.unit},
		{Name: "ratio_off", Title: "of off", Value: compare(t.value), Unit: report.Ratio},
		{Name: "cpu_s", Title: "CPU", Value: report.Summarise(r.of(t, s.name, cpu)), Unit: report.Seconds, Brief: true},
		{Name: "cpu_per", Value: t.cpuUnit, Hidden: true},
		{Name: "cpu_ratio_off", Title: "CPU of off", Value: compare(cpu), Unit: report.Ratio},
	}
	if s.off() {
		row = append(row, report.Field{Name: "lost", Title: "lost", Value: nil})
	} else {
		row = append(row, report.Field{Name: "lost", Title: "lost", Value: report.Summarise(lost),
			Unit: report.Ratio, Brief: true})
	}
	return append(row, report.Field{Name: "samples", Value: r.of(t, s.name, t.value), Hidden: true})
}

// lost is the lost share of the selected frames, round by round.
func (r *captureRun) lost(state string) []float64 {
	var v []float64
	for _, m := range r.rounds {
		v = append(v, m.lost[state])
	}
	return v
}

// method says how it was measured.
func (r *captureRun) method(cpus int) string {
	rounds := fmt.Sprintf("%d interleaved rounds", len(r.rounds))
	if len(r.rounds) < r.opts.Rounds {
		rounds = fmt.Sprintf("%d interleaved rounds of %d, which is what %v sufficed for,", len(r.rounds),
			r.opts.Rounds, r.opts.Within)
	}
	return fmt.Sprintf("%s of %v per test after %v of warm-up; ratios are medians (quartiles) of the rounds' ratios. "+
		"program is the kernel program alone on one 60-byte frame from port to port, by repeated test runs: it "+
		"passes two stages, so that it is "+
		"captured twice. cost is what the rows of program come to, from the differences within each round: a stage "+
		"is (%s − off) / 2, an "+
		"instruction (%s − %s) / %d, a frame or copy captured (%s − %s) / 2. "+
		"CPU is the time both ends took, with what the kernel does for them, per GB, transaction or packet; lost is "+
		"the part of what a capture "+
		"selected that its reader was too slow for. Captures write to %s. The reader, the sender and the receiver "+
		"share %d CPUs: what a capture of "+
		"everything takes from the guests is mostly the CPU that copying and writing needs. Off, the devices have "+
		"the live program, which knows "+
		"nothing of captures.",
		rounds, r.opts.Duration, r.opts.Warmup, captureElse, captureLong(), captureShort, stagesPassed*(longFilter-1),
		captureAll, captureElse,
		os.DevNull, cpus)
}
