package migration

import (
	"fmt"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// reassignReport makes the report of the results.
func reassignReport(all []reassigned, e effort) *report.Report {
	r := &report.Report{Name: PortMoveName, Environment: report.Collect(time.Now()),
		Explained: "reference/migration.md", Labs: topology.OfText(portMoveText)}
	for i := range all {
		r.Rows = append(r.Rows, all[i].fields())
		r.Budgets = append(r.Budgets, all[i].budgets()...)
	}
	r.Notes = []string{
		fmt.Sprintf("%.0f numbered packets a second each way, while a controller is asked to move the port there "+
			"and back.", e.rate),
		"gap out, gap in: the longest silence of the packets from and to the guest, which on a busy machine is that " +
			"of their sender: compare with the row \"still\". returned: until the controller has answered. wrong: of " +
			"the packets that are sent after the answer, those that reached the segment that the guest had left, or " +
			"did not reach the one that it is in. What the guest of the row \"segment\" sends is heard at the " +
			"uplink, and packets to it are not counted: their sender stays in the first segment.",
	}
	return r
}

func (m *reassigned) fields() report.Row {
	var gapIn, lostOut, lostIn any
	if !m.row.leaves {
		gapIn, lostOut, lostIn = report.Summarise(m.gapIn), lost(m.out), lost(m.in)
	}
	return report.Row{
		{Name: "name", Title: "row", Value: m.row.name},
		{Name: "setting", Value: m.row.setting, Hidden: true},
		{Name: "moves", Value: len(m.gapOut), Unit: report.Count},
		{Name: "gap_out_s", Title: "gap out", Unit: report.Seconds, Value: report.Summarise(m.gapOut)},
		{Name: "gap_in_s", Title: "gap in", Unit: report.Seconds, Value: gapIn},
		{Name: "returned_s", Title: "returned", Unit: report.Seconds, Brief: true,
			Value: report.Summarise(m.returned)},
		{Name: "sent", Unit: report.Count, Value: m.out.Sent + m.in.Sent + m.heard},
		{Name: "lost_out", Title: "lost", Unit: report.Count, Value: lostOut},
		{Name: "lost_in", Title: "in", Unit: report.Count, Value: lostIn},
		{Name: "duplicated", Title: "dup", Unit: report.Count, Value: m.out.Duplicated + m.in.Duplicated},
		{Name: "reordered", Title: "reord", Unit: report.Count, Value: m.out.Reordered + m.in.Reordered},
		{Name: "wrong", Unit: report.Count, Value: m.wrong},
	}
}

func (m *reassigned) budgets() []report.Budget {
	if m.row.to == (place{}) {
		return nil
	}
	name := func(what string) string { return m.row.name + ": " + what }
	list := []report.Budget{
		report.Hold(name("gap out"), report.Summarise(m.gapOut).Median, report.Seconds, report.AtMost, PortMoveBudget),
		report.Hold(name("duplicated"), float64(m.out.Duplicated+m.in.Duplicated), report.Count, report.Exactly, 0),
	}
	list = append(list, report.Hold(name("wrong segment"), float64(m.wrong), report.Count, report.Exactly, 0))
	if m.row.leaves {
		return list
	}
	return append(list, report.Hold(name("gap in"), report.Summarise(m.gapIn).Median, report.Seconds, report.AtMost,
		PortMoveBudget))
}
