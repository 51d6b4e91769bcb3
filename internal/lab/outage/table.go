package outage

import (
	"fmt"
	"math"

	"heddle/internal/lab/report"
)

// report adds the row and its budget.
func (m *measured) report(r *report.Report) {
	r.Rows = append(r.Rows, report.Row{
		{Name: "name", Title: "row", Value: m.row.name},
		{Name: "setting", Value: m.row.setting},
		{Name: "event", Value: m.row.event.String()},
		{Name: "ports", Value: m.ports, Unit: report.Count},
		{Name: "active_s", Title: "active", Value: spread(m.took), Unit: report.Seconds},
		{Name: "gap_out_s", Title: "gap out", Value: spread(m.out.gap), Unit: report.Seconds},
		{Name: "gap_in_s", Title: "gap in", Value: spread(m.in.gap), Unit: report.Seconds},
		{Name: "lost_out", Title: "lost out", Value: spread(m.out.lost), Unit: report.Count, Brief: true},
		{Name: "lost_in", Title: "lost in", Value: spread(m.in.lost), Unit: report.Count, Brief: true},
		{Name: "duplicated", Title: "dup", Value: m.duplicated, Unit: report.Count},
		{Name: "reordered", Title: "reord", Value: m.reordered, Unit: report.Count},
		{Name: "sent", Value: m.sent, Unit: report.Count, Hidden: true},
	})
	if !m.row.held {
		return
	}
	for _, d := range []struct {
		name string
		gap  []float64
	}{{"out", m.out.gap}, {"in", m.in.gap}} {
		if len(d.gap) > 0 {
			r.Budgets = append(r.Budgets, report.Hold(fmt.Sprintf("%s: gap %s", m.row.name, d.name),
				report.Summarise(d.gap).Median, report.Seconds, report.AtMost, Budget))
		}
	}
}

// report compares what the idle agent uses with its budgets.
func (a atRest) report(r *report.Report) {
	r.Budgets = append(r.Budgets,
		report.Hold(fmt.Sprintf("agent at rest, %d ports: CPU of a core", a.ports), a.cpu*100, report.Percent,
			report.AtMost, restCPU*100),
		report.Hold(fmt.Sprintf("agent at rest, %d ports: memory", a.ports), a.memory, report.Bytes, report.AtMost,
			restMemory))
}

// spread is the spread of the rounds, or nil (not measured) without rounds.
func spread(rounds []float64) any {
	if s := report.Summarise(rounds); s.Rounds > 0 {
		return s
	}
	return nil
}

// conclusions say what the rows show.
func conclusions(all []*measured) (list []string) {
	by := map[string]*measured{}
	var worst, held float64
	for _, m := range all {
		by[m.row.name] = m
		if m.row.held {
			held++
			for _, d := range []direction{m.out, m.in} {
				worst = max(worst, report.Summarise(d.gap).Median)
			}
		}
	}
	if held > 0 {
		text := fmt.Sprintf("When an uplink failed or came back, the guest's traffic was silent for at most %s, by "+
			"the middle of the rounds of each row", report.Seconds.Format(worst))
		if rest := by["baseline"]; rest != nil {
			text += fmt.Sprintf("; the machine's own unrest, with nothing happening, is %s",
				report.Seconds.Format(max(report.Summarise(rest.out.gap).Median, report.Summarise(rest.in.gap).Median)))
		}
		list = append(list, text+".")
	}
	median := func(name string) float64 {
		if m := by[name]; m != nil {
			return report.Summarise(m.in.gap).Median
		}
		return math.NaN()
	}
	if told, untold := median("receive-only"), median("receive-only-unannounced"); told > 0 && untold > 0 {
		list = append(list, fmt.Sprintf("A guest that only receives is reached again after %s, when its MAC is "+
			"announced; with notifySwitches off it is out of reach until it sends something, here until the end of "+
			"the %s.",
			report.Seconds.Format(told), report.Seconds.Format(duration.Seconds())))
	}
	if by["receive-only-many"] != nil {
		list = append(list, "Announcements are limited to 128 frames per 100 ms over the whole host: with many ports "+
			"a silent guest, here the last one, waits for its turn.")
	}
	return list
}

// notes say how it was measured.
func notes() []string {
	return []string{
		fmt.Sprintf("A gap is the longest silence at a receiver of %.0f numbered packets a second, out from the "+
			"guest and in to it; the baseline is the machine's own unrest. What was lost is the better measure on a "+
			"busy machine: one packet is 1 ms.", rate),
		"Active: from the kernel's notification, or the reading of the carrier, until the switch sends by the " +
			"other uplink.",
	}
}
