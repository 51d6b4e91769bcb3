package live

import (
	"fmt"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// The budgets for a VLAN change of running ports (docs/reference/benchmarks.md), checked for every change.
const inForceBudget = 10e-3 // seconds

// Report makes the report of the results.
func Report(all []Measured, ports int) *report.Report {
	r := &report.Report{Name: Name, Environment: report.Collect(time.Now()),
		Explained: "explanation/live-change.md",
		Labs:      topology.OfText(labFile), Conclusions: conclusions(all)}
	for i := range all {
		m := &all[i]
		r.Rows = append(r.Rows, m.fields(ports))
		r.Budgets = append(r.Budgets, m.budgets()...)
	}
	r.Notes = []string{
		fmt.Sprintf("%d ports; every round changes there and back under a numbered stream between two of them.", ports),
		"active: from the command's having read its input to the one system call that changes all ports; returned: " +
			"until the state is on disk and a grace period of the kernel is over.",
		fmt.Sprintf("leaked: frames that a promiscuous port of the old segment was handed later than %v after the "+
			"change, both read from CLOCK_MONOTONIC in the kernel; last in old: the last one of all.", leakAfter),
		"gap: the longest silence in the stream, which on a busy machine is that of its sender; compare with the row " +
			"\"nothing\".",
	}
	for i := range all {
		if m := &all[i]; m.Starved > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("row %s: in %d changes the machine was too busy for the watcher to "+
				"see the stream: they say nothing of what leaked.", m.Row.name, m.Starved))
		}
	}
	return r
}

// conclusions say what the rows show.
func conclusions(all []Measured) []string {
	var sent, lost, leaked uint64
	worst := 0.0
	for i := range all {
		m := &all[i]
		sent, lost, leaked = sent+m.Sent, lost+m.Lost, leaked+m.Leaked
		if !m.Row.quiet {
			worst = max(worst, report.Summarise(m.InForce).Median)
		}
	}
	if worst == 0 {
		return nil
	}
	return []string{fmt.Sprintf("A change of policy is active for all ports at one instant, %s after the command has "+
		"read its input at most, by the middle of each row's rounds. The streams across the changes lost %d of %d "+
		"packets, and %d frames reached the old segment too late.", report.Seconds.Format(worst), lost, sent, leaked)}
}

func (m *Measured) fields(ports int) report.Row {
	return report.Row{
		{Name: "name", Title: "row", Value: m.Row.name},
		{Name: "setting", Value: m.Row.setting, Hidden: true},
		{Name: "ports", Value: ports, Unit: report.Count, Hidden: true},
		{Name: "active_s", Title: "active", Value: spread(m.InForce), Unit: report.Seconds},
		{Name: "returned_s", Title: "returned", Value: spread(m.Returned), Unit: report.Seconds, Brief: true},
		{Name: "gap_s", Title: "gap", Value: spread(m.Gap), Unit: report.Seconds},
		{Name: "sent", Value: m.Sent, Unit: report.Count},
		{Name: "lost", Value: m.Lost, Unit: report.Count},
		{Name: "duplicated", Title: "dup", Value: m.Duplicated, Unit: report.Count},
		{Name: "reordered", Value: m.Reordered, Unit: report.Count, Hidden: true},
		{Name: "leaked", Value: leaked(m), Unit: report.Count},
		{Name: "last_in_old_s", Title: "last in old", Value: spread(m.LastInOld), Unit: report.Seconds, Brief: true},
		{Name: "flaps", Value: m.Flaps, Unit: report.Count},
	}
}

func (m *Measured) budgets() []report.Budget {
	b := []report.Budget{
		report.Hold(m.Row.name+" lost", float64(m.Lost), report.Count, report.Exactly, 0),
		report.Hold(m.Row.name+" duplicated", float64(m.Duplicated), report.Count, report.Exactly, 0),
		report.Hold(m.Row.name+" link flaps", float64(m.Flaps), report.Count, report.Exactly, 0),
	}
	if !m.Row.quiet {
		b = append(b, report.Hold(m.Row.name+" active", report.Summarise(m.InForce).Median, report.Seconds,
			report.AtMost, inForceBudget))
	}
	if m.Row.leaves {
		b = append(b, report.Hold(m.Row.name+" leaked", float64(m.Leaked), report.Count, report.Exactly, 0))
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

func leaked(m *Measured) any {
	if !m.Row.leaves {
		return nil
	}
	return m.Leaked
}
