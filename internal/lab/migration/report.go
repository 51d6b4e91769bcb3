package migration

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// fill adds the rows, their budgets and what they say.
func fill(rep *report.Report, all []*measured, e effort) {
	for _, m := range all {
		rep.Rows = append(rep.Rows, m.fields())
		rep.Budgets = append(rep.Budgets, m.budgets()...)
		rep.Conclusions = append(rep.Conclusions, m.conclusions()...)
	}
	rep.Notes = notes(e)
	rep.Timelines = []report.Timeline{timeline(all)}
	rep.Plots = []report.Plot{
		{Title: "Longest silence of the numbered packets", Series: []report.Series{
			{Name: "from the guest", Field: "gap_out_s"}, {Name: "to the guest", Field: "gap_in_s"}}},
		{Title: "From the guest's start until the bulk transfer has its rate again",
			Series: []report.Series{{Field: "bulk_s"}}},
	}
}

// sum adds up a count over all moves.
func (m *measured) sum(of func(*move) uint64) (n uint64) {
	for i := range m.moves {
		n += of(&m.moves[i])
	}
	return n
}

// spread is the spread of a value over all moves, nil without any.
func (m *measured) spread(of func(*move) float64) any {
	if s := report.Summarise(m.each(of)); s.Rounds > 0 {
		return s
	}
	return nil
}

func (m *measured) each(of func(*move) float64) []float64 {
	list := make([]float64, 0, len(m.moves))
	for i := range m.moves {
		list = append(list, of(&m.moves[i]))
	}
	return list
}

// lost is what of a direction never came, without what its receiver was too slow for.
func lost(p traffic.Received) uint64 { return p.Lost - min(p.Overflowed, p.Lost) }

func (x *move) gap() float64 { return max(x.out.LongestGap, x.in.LongestGap) }

// fields are the columns. A row of bridges has no counters, and one in which nobody moves no frames at a wrong time.
func (m *measured) fields() report.Row {
	ifMoves := func(v any) any {
		if m.row.still {
			return nil
		}
		return v
	}
	ifReal := func(of func(*move) float64) any {
		if m.row.real {
			return m.spread(of)
		}
		return nil
	}
	var differs any
	if m.has {
		differs = m.differ
	}
	return report.Row{
		{Name: "name", Title: "row", Value: m.row.name},
		{Name: "setting", Value: m.row.setting, Hidden: true},
		{Name: "moves", Value: len(m.moves), Unit: report.Count, Hidden: true},
		{Name: "gap_out_s", Title: "gap out", Unit: report.Seconds, Brief: true,
			Value: m.spread(func(x *move) float64 { return x.out.LongestGap })},
		{Name: "gap_in_s", Title: "gap in", Unit: report.Seconds, Brief: true,
			Value: m.spread(func(x *move) float64 { return x.in.LongestGap })},
		{Name: "gap_p99_s", Title: "p99", Unit: report.Seconds, Value: percentile99(m.each((*move).gap))},
		{Name: "gap_max_s", Title: "max", Unit: report.Seconds, Value: slices.Max(m.each((*move).gap))},
		{Name: "pause_s", Title: "pause", Unit: report.Seconds, Brief: true,
			Value: ifReal(func(x *move) float64 { return x.times.runs.Sub(x.times.stopped).Seconds() })},
		{Name: "downtime_s", Unit: report.Seconds, Hidden: true,
			Value: ifReal(func(x *move) float64 { return x.downtime.Seconds() })},
		{Name: "beyond_out_s", Title: "beyond", Unit: report.Seconds, Brief: true,
			Value: ifReal(func(x *move) float64 { return x.beyondOut })},
		{Name: "own_out_s", Unit: report.Seconds, Hidden: true,
			Value: ifReal(func(x *move) float64 { return x.ownOut })},
		{Name: "beyond_in_s", Title: "in", Unit: report.Seconds, Brief: true,
			Value: ifReal(func(x *move) float64 { return x.beyondIn })},
		{Name: "beyond_p99_s", Title: "p99", Unit: report.Seconds, Value: m.beyond(percentile99)},
		{Name: "beyond_max_s", Title: "max", Unit: report.Seconds, Value: m.beyond(slices.Max[[]float64])},
		{Name: "rarp_s", Title: "rarp", Unit: report.Seconds, Brief: true,
			Value: ifMoves(m.spread(func(x *move) float64 { return x.rarpAfter }))},
		{Name: "rarps", Unit: report.Count, Hidden: true,
			Value: ifMoves(m.sum(func(x *move) uint64 { return x.rarps }))},
		{Name: "lost_out", Title: "lost", Unit: report.Count,
			Value: m.sum(func(x *move) uint64 { return lost(x.out) })},
		{Name: "lost_in", Title: "in", Unit: report.Count, Value: m.sum(func(x *move) uint64 { return lost(x.in) })},
		{Name: "duplicated", Title: "dup", Unit: report.Count,
			Value: m.sum(func(x *move) uint64 { return x.duplicated })},
		{Name: "reordered", Title: "reord", Unit: report.Count,
			Value: m.sum(func(x *move) uint64 { return x.out.Reordered + x.in.Reordered })},
		{Name: "early", Unit: report.Count, Value: ifMoves(m.sum(func(x *move) uint64 { return x.early }))},
		{Name: "early_sent", Title: "sent", Unit: report.Count,
			Value: ifMoves(m.sum(func(x *move) uint64 { return x.strayEarly }))},
		{Name: "late", Unit: report.Count, Value: ifMoves(m.sum(func(x *move) uint64 { return x.late }))},
		{Name: "late_sent", Title: "sent", Unit: report.Count,
			Value: ifMoves(m.sum(func(x *move) uint64 { return x.strayLate }))},
		{Name: "broken", Unit: report.Count, Value: m.broken},
		{Name: "bulk_s", Title: "bulk", Unit: report.Seconds, Brief: true,
			Value: m.spread(func(x *move) float64 { return x.bulk })},
		{Name: "bulk_timeouts", Unit: report.Count, Hidden: true,
			Value: m.sum(func(x *move) uint64 { return x.timeouts })},
		{Name: "bulk_resent", Unit: report.Count, Hidden: true,
			Value: m.sum(func(x *move) uint64 { return x.resent })},
		{Name: "counters_differ", Title: "counters", Unit: report.Count, Value: differs},
		{Name: "copies", Unit: report.Count, Value: ifMoves(m.copies), Hidden: true},
		{Name: "unanswered", Unit: report.Count, Hidden: true,
			Value: m.sum(func(x *move) uint64 { return x.unanswered })},
		{Name: "sent_while_still", Unit: report.Count, Hidden: true,
			Value: ifMoves(m.sum(func(x *move) uint64 { return x.stood }))},
		{Name: "sent_packets", Unit: report.Count, Hidden: true,
			Value: m.sum(func(x *move) uint64 { return x.out.Sent + x.in.Sent })},
	}
}

// network is for how long packets of a real guest stood still beyond QEMU's pause by the network's doing: without the
// time in which the guest itself sent nothing at its tap.
func (x *move) network() float64 { return max(x.beyondOut-x.ownOut, x.beyondIn) }

// beyond is that of all moves of a real guest; nil for other rows, and where it was never measured.
func (m *measured) beyond(of func([]float64) float64) any {
	list := slices.DeleteFunc(m.each((*move).network), math.IsNaN)
	if !m.row.real || len(list) == 0 {
		return nil
	}
	return of(list)
}

// percentile99 is the value that 99 of 100 do not exceed (nearest rank): of less than 100 values the greatest.
func percentile99(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[max(0, (99*len(list)+99)/100-1)]
}

// budgets are the promises of a move between two Heddle hosts.
func (m *measured) budgets() []report.Budget {
	if !m.row.held() {
		return nil
	}
	name := func(what string) string { return m.row.name + ": " + what }
	exact := func(what string, n uint64) report.Budget {
		return report.Hold(name(what), float64(n), report.Count, report.Exactly, 0)
	}
	gap := report.Hold(name("gap, p99"), percentile99(m.each((*move).gap)), report.Seconds, report.AtMost, GapBudget)
	bulk := report.Hold(name("bulk transfer at its rate"), worst(m.each(func(x *move) float64 { return x.bulk })),
		report.Seconds, report.AtMost, BulkBudget)
	if m.row.real {
		beyond, measured := m.beyond(percentile99).(float64)
		if !measured {
			beyond = math.NaN()
		}
		gap = report.Hold(name("gap beyond the pause, p99"), beyond, report.Seconds, report.AtMost, GapBudget)
	}
	return []report.Budget{
		gap,
		report.Hold(name("announced"), m.announced(), report.Seconds, report.AtMost, AnnounceBudget),
		exact("early frames", m.sum(func(x *move) uint64 { return x.early + x.strayEarly })),
		exact("duplicated", m.sum(func(x *move) uint64 { return x.duplicated })),
		exact("broken connections", uint64(m.broken)),
		exact("counters differ by", m.differ),
		bulk,
	}
}

// announced is the middle of the times until the guest's MAC was announced, NaN for never.
func (m *measured) announced() float64 {
	s := report.Summarise(m.each(func(x *move) float64 { return x.rarpAfter }))
	if s.Rounds == 0 {
		return math.NaN()
	}
	return s.Median
}

// worst is the greatest of some values, NaN if one is.
func worst(list []float64) float64 {
	w := math.Inf(-1)
	for _, x := range list {
		if math.IsNaN(x) {
			return x
		}
		w = max(w, x)
	}
	return w
}

// middle is the move whose gap is in the middle.
func (m *measured) middle() *move {
	list := make([]*move, 0, len(m.moves))
	for i := range m.moves {
		list = append(list, &m.moves[i])
	}
	slices.SortStableFunc(list, func(a, b *move) int {
		switch {
		case a.gap() < b.gap():
			return -1
		case a.gap() > b.gap():
			return 1
		}
		return 0
	})
	return list[len(list)/2]
}

// timeline tells one move in milliseconds.
func (m *measured) timeline() string {
	x := m.middle()
	ms := func(at time.Time) string {
		return fmt.Sprintf("%.1f ms", float64(at.Sub(x.times.stopped).Microseconds())/1000)
	}
	again := func(p traffic.Received) string {
		from := time.Unix(0, p.LongestGapAt)
		to := from.Add(time.Duration(p.LongestGap * float64(time.Second)))
		if to.Before(x.times.stopped) || from.After(x.times.arrived) {
			return "an unknown time (the machine's own unrest made a longer silence)"
		}
		return ms(to)
	}
	return fmt.Sprintf("One move of row %s, from when the guest stops: the target is prepared at %s, the source is "+
		"silent at %s, the guest runs at %s; its packets come through again at %s, packets to it at %s; the target "+
		"has taken its arrival in by %s, and the source has released it by %s.", m.row.name, ms(x.times.prepared),
		ms(x.times.silent), ms(x.times.runs), again(x.out), again(x.in), ms(x.times.arrived), ms(x.times.released))
}

// conclusions tell one move in milliseconds, and the counters.
func (m *measured) conclusions() []string {
	list := slices.Concat(m.never(), m.timedOut(), m.counters(), m.differences())
	if m.row.real {
		return slices.Concat([]string{m.timeline()}, m.told(), list)
	}
	if m.row.still || len(m.moves) == 0 {
		return list
	}
	text := m.timeline()
	if m.has && m.copies < len(m.moves) {
		text += fmt.Sprintf(" %d of %d moves had no copy of the port at the target: no controller ordered it "+
			"within %v.", len(m.moves)-m.copies, len(m.moves), copyTime)
	}
	return append([]string{text}, list...)
}

// told tells what a real guest's row has that others don't.
func (m *measured) told() []string {
	list := []string{fmt.Sprintf("Row %s: the guest is emulated and carries %.0f numbered packets a second each way, "+
		"a bulk transfer of %s and %d connections. What was sent to it during QEMU's own pause is among the "+
		"packets lost.", m.row.name, m.effort.rate, report.BitsPerSecond.Format(m.effort.bulk), m.effort.connections)}
	own, out := report.Summarise(m.each(func(x *move) float64 { return x.ownOut })),
		report.Summarise(m.each(func(x *move) float64 { return x.beyondOut }))
	if own.Rounds > 0 && out.Rounds > 0 {
		list = append(list, fmt.Sprintf("Row %s: from the guest, packets stood still for %s beyond the pause on the "+
			"wire, and for %s at its own tap, which is the guest's slowness and not the network's.", m.row.name,
			report.Seconds.Format(out.Median), report.Seconds.Format(own.Median)))
	}
	if m.repeated > 0 {
		list = append(list, fmt.Sprintf("Row %s: the kernel of the emulated guest failed %d times after a move; it "+
			"went on with another guest, and these moves don't count.", m.row.name, m.repeated))
	}
	if m.copies < len(m.moves) {
		list = append(list, fmt.Sprintf("Row %s: %d of %d moves had no copy of the port at the target.", m.row.name,
			len(m.moves)-m.copies, len(m.moves)))
	}
	return list
}

// counters are what the guest has sent and got, and what its port shows in the end.
func (m *measured) counters() []string {
	if !m.has || len(m.moves) == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.before)) {
		if want, shown := m.before[name], m.after[name]; want > 0 || shown > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d", name, want, shown))
		}
	}
	return []string{fmt.Sprintf("Row %s: %d counters are compared after %d moves; by the guest's traffic, and as the "+
		"port shows them, those above 0 are %s.", m.row.name, len(m.before), len(m.moves), strings.Join(parts, ", "))}
}

// differences name the counters that are not what they should be.
func (m *measured) differences() []string {
	if !m.has || m.differ == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.before)) {
		if want, shown := m.before[name], m.after[name]; want != shown {
			parts = append(parts, fmt.Sprintf("%s %d instead of %d", name, shown, want))
		}
	}
	return []string{fmt.Sprintf("Row %s: the port's counters lack or exceed what the guest sent and got: %s.",
		m.row.name, strings.Join(parts, ", "))}
}

// timeline shows of each row and direction the silence of the move in the middle.
func timeline(all []*measured) report.Timeline {
	t := report.Timeline{Title: "The longest silence of the numbered packets, around the guest's stop",
		Event: "it stops", From: -lead.Seconds(), To: tail.Seconds()}
	for _, m := range all {
		if len(m.moves) == 0 {
			continue
		}
		x := m.middle()
		for _, d := range []struct {
			name string
			p    traffic.Received
		}{{"from the guest", x.out}, {"to the guest", x.in}} {
			if d.p.LongestGapAt == 0 {
				continue
			}
			l := report.Lane{Label: m.row.name + ", " + d.name,
				From: time.Unix(0, d.p.LongestGapAt).Sub(x.times.stopped).Seconds()}
			l.To = l.From + d.p.LongestGap
			l.Start, l.End = min(t.From, l.From), max(t.To, l.To)
			t.From, t.To = min(t.From, l.Start), max(t.To, l.End)
			t.Lanes = append(t.Lanes, l)
		}
	}
	return t
}

// notes say how it was measured.
func notes(e effort) []string {
	return []string{
		fmt.Sprintf("%.0f numbered packets a second each way, a bulk transfer to the guest of %s, %d connections with "+
			"a request a second, %d pings a second. The guest stands still for %v or until the source is silent.",
			e.rate, report.BitsPerSecond.Format(e.bulk), e.connections, pingRate, stillFor),
		"Columns: gap out, gap in: the longest silence of the numbered packets from and to the guest, by the " +
			"kernel's time of their arrival; max: the longest of both. lost, in: packets from and to the guest. " +
			"early: frames delivered to the guest's device at the target before it ran there, sent: frames of its " +
			"MAC that the target sent by then; late, sent: the same at the source after it stopped. rarp: until " +
			"the target, or QEMU on a bridge, announced the guest's MAC in the network. bulk: until the transfer has " +
			"its rate again. counters: by how much the port's counters differ from what the guest " +
			"sent and got. Of a real guest, pause: how long QEMU let it stand still, beyond, in: by how much longer " +
			"its numbered packets stood still from and to it; p99 and max after it: the longer of both without " +
			"the guest's own slowness.",
		"What the guest's stack sends while it stands still is lost in the lab's valve, and counts as lost here; a " +
			"real guest's stack stands still too.",
	}
}
