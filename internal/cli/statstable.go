package cli

import (
	"io"
	"slices"
	"strconv"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
)

// hostLine is a line of counters of a host; "" is this one.
type hostLine struct {
	host string
	stats.Line
}

// lines returns the lines of all hosts, with rates where there is an earlier reading.
func (q *statsQuery) lines(before map[string]stats.Reading, all []said[[]api.Stats]) (lines []hostLine) {
	for _, s := range all {
		for _, l := range stats.Sum(stats.Lines(before[s.host], s.answer), stats.By(q.by)) {
			lines = append(lines, hostLine{s.host, l})
		}
	}
	return lines
}

// objects returns lines as they are printed in JSON.
func (q *statsQuery) objects(lines []hostLine) any {
	bare, with := []stats.Line{}, []hosted[stats.Line]{}
	for _, l := range lines {
		bare, with = append(bare, l.Line), append(with, hosted[stats.Line]{l.host, l.Line})
	}
	if q.all {
		return with
	}
	return bare
}

// lineNames returns the cells that name a line, and their headings.
func lineNames(by stats.By) (head []string, cells func(hostLine) []string) {
	switch by {
	case stats.Switch:
		return []string{"SWITCH", "PORTS"}, func(l hostLine) []string {
			return []string{l.Switch, strconv.Itoa(l.Ports)}
		}
	case stats.PortGroup:
		return []string{"SWITCH", "PORT GROUP"}, func(l hostLine) []string { return []string{l.Switch, l.PortGroup} }
	}
	return []string{"SWITCH", "PORT"}, func(l hostLine) []string { return []string{l.Switch, l.Port} }
}

// numbers returns a table of two columns of names and further columns of numbers, which are never cut.
func numbers(names, heads []string) *table {
	t := &table{head: append(names, heads...), right: map[int]bool{}, keep: map[int]bool{}, names: map[int]bool{}}
	for i := range names {
		t.names[i] = true
	}
	for i := range heads {
		t.right[len(names)+i], t.keep[len(names)+i] = true, true
	}
	return t
}

func statsTable(w io.Writer, d Deps, lines []hostLine, by stats.By, hosts bool) error {
	head, names := lineNames(by)
	tab := numbers(head, []string{"PKTS IN", "BYTES IN", "PKTS OUT", "BYTES OUT", "IN DROPS", "OUT DROPS", "FILTERED",
		"LOST"})
	tab.paint = paintLosses(d, slices.Clone(tab.head))
	tab.narrow = []func(*table){leaveOutSwitch(by), shortNumbers("BYTES IN", "BYTES OUT"), leaveOut("FILTERED"),
		shortNumbers("PKTS IN", "PKTS OUT", "IN DROPS", "OUT DROPS", "LOST"), shortHeadings}
	if hosts {
		tab.withHosts()
	}
	for _, l := range lines {
		cells := names(l)
		if hosts {
			cells = append([]string{l.host}, cells...)
		}
		for _, n := range []uint64{l.Counts.PacketsIn, l.Counts.BytesIn, l.Counts.PacketsOut, l.Counts.BytesOut,
			l.Counts.InDropped, l.Counts.OutDropped, l.Counts.Filtered, l.Counts.DeviceLost} {
			cells = append(cells, strconv.FormatUint(n, 10))
		}
		tab.add(cells...)
	}
	return tab.write(w)
}

func ratesTable(w io.Writer, d Deps, lines []hostLine, by stats.By, hosts bool) error {
	head, names := lineNames(by)
	tab := numbers(head, []string{"IN PKT/S", "IN BIT/S", "OUT PKT/S", "OUT BIT/S", "IN DROP/S", "OUT DROP/S",
		"FILTERED/S", "LOST/S"})
	tab.paint = paintLosses(d, slices.Clone(tab.head))
	tab.narrow = []func(*table){leaveOutSwitch(by), shortHeadings, leaveOut("FILTERED")}
	if hosts {
		tab.withHosts()
	}
	for _, l := range lines {
		cells := names(l)
		if hosts {
			cells = append([]string{l.host}, cells...)
		}
		r := l.Rates
		if r == nil {
			tab.add(append(cells, "-", "-", "-", "-", "-", "-", "-", "-")...)
			continue
		}
		for _, n := range []float64{r.PacketsIn, 8 * r.BytesIn, r.PacketsOut, 8 * r.BytesOut, r.InDropped, r.OutDropped,
			r.Filtered, r.DeviceLost} {
			cells = append(cells, stats.Short(n))
		}
		tab.add(cells...)
	}
	return tab.write(w)
}

// leaveOutSwitch makes a table narrower by leaving out the switch; a table of switches keeps it.
func leaveOutSwitch(by stats.By) func(*table) {
	if by == stats.Switch {
		return func(*table) {}
	}
	return leaveOutTheOnly("SWITCH")
}

// shortNumbers makes numbers narrower: 34.8G.
func shortNumbers(headings ...string) func(*table) {
	return func(t *table) {
		of := columns(t.head, headings...)
		for _, row := range t.rows {
			for c := range row {
				if n, err := strconv.ParseUint(row[c], 10, 64); of[c] && err == nil {
					row[c] = stats.Short(float64(n))
				}
			}
		}
	}
}

// shortHeadings makes columns of short numbers narrower: PPS is packets per second, BPS bits per second.
func shortHeadings(t *table) {
	short := map[string]string{"IN PKT/S": "IN PPS", "OUT PKT/S": "OUT PPS", "IN BIT/S": "IN BPS",
		"OUT BIT/S": "OUT BPS",
		"IN DROP/S": "IN DROP", "OUT DROP/S": "OUT DROP",
		"FILTERED/S": "FILTERED", "LOST/S": "LOST",
		"IN DROPS": "IN DROP", "OUT DROPS": "OUT DROP", "PKTS IN": "PKT IN", "PKTS OUT": "PKT OUT",
		"PROMISCUOUS": "PROMISC", "MAC CHANGES": "MAC CHG"}
	for c, heading := range t.head {
		if s, ok := short[heading]; ok {
			t.head[c] = s
		}
	}
}

// paintLosses colours what was dropped or lost, as "heddle top" does.
func paintLosses(d Deps, head []string) func(int, string, string) string {
	of := columns(head, "IN DROPS", "OUT DROPS", "LOST", "IN DROP/S", "OUT DROP/S", "LOST/S")
	return func(col int, text, padded string) string {
		if of[col] && text != "0" && text != "-" {
			return d.coloured(yellow, padded)
		}
		return padded
	}
}
