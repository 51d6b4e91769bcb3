package stats

import (
	"io"
	"slices"
	"strconv"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose/stats"
)

// hostLine is a line of counters of a host; "" is this one.
type hostLine struct {
	host string
	stats.Line
}

// lines returns the lines of all hosts, with rates where there is an earlier reading.
func (q *statsQuery) lines(before map[string]stats.Reading, all []cli.Said[[]api.Stats]) (lines []hostLine) {
	for _, s := range all {
		for _, l := range stats.Sum(stats.Lines(before[s.Host], s.Answer), stats.By(q.by)) {
			lines = append(lines, hostLine{s.Host, l})
		}
	}
	return lines
}

// objects returns lines as they are printed in JSON.
func (q *statsQuery) objects(lines []hostLine) any {
	bare, with := []stats.Line{}, []cli.Hosted[stats.Line]{}
	for _, l := range lines {
		bare, with = append(bare, l.Line), append(with, cli.Hosted[stats.Line]{Host: l.host, Of: l.Line})
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

func statsTable(w io.Writer, d cli.Deps, lines []hostLine, by stats.By, hosts bool) error {
	head, names := lineNames(by)
	tab := cli.Numbers(head, []string{"PKTS IN", "BYTES IN", "PKTS OUT", "BYTES OUT", "IN DROPS", "OUT DROPS",
		"FILTERED",
		"LOST"})
	tab.Paint = paintLosses(d, slices.Clone(tab.Head))
	tab.Narrow = []func(*cli.Table){leaveOutSwitch(by), shortNumbers("BYTES IN", "BYTES OUT"), cli.LeaveOut("FILTERED"),
		shortNumbers("PKTS IN", "PKTS OUT", "IN DROPS", "OUT DROPS", "LOST"), cli.ShortHeadings}
	if hosts {
		tab.WithHosts()
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
		tab.Add(cells...)
	}
	return tab.Write(w)
}

func ratesTable(w io.Writer, d cli.Deps, lines []hostLine, by stats.By, hosts bool) error {
	head, names := lineNames(by)
	tab := cli.Numbers(head, []string{"IN PKT/S", "IN BIT/S", "OUT PKT/S", "OUT BIT/S", "IN DROP/S", "OUT DROP/S",
		"FILTERED/S", "LOST/S"})
	tab.Paint = paintLosses(d, slices.Clone(tab.Head))
	tab.Narrow = []func(*cli.Table){leaveOutSwitch(by), cli.ShortHeadings, cli.LeaveOut("FILTERED")}
	if hosts {
		tab.WithHosts()
	}
	for _, l := range lines {
		cells := names(l)
		if hosts {
			cells = append([]string{l.host}, cells...)
		}
		r := l.Rates
		if r == nil {
			tab.Add(append(cells, "-", "-", "-", "-", "-", "-", "-", "-")...)
			continue
		}
		for _, n := range []float64{r.PacketsIn, 8 * r.BytesIn, r.PacketsOut, 8 * r.BytesOut, r.InDropped, r.OutDropped,
			r.Filtered, r.DeviceLost} {
			cells = append(cells, stats.Short(n))
		}
		tab.Add(cells...)
	}
	return tab.Write(w)
}

// leaveOutSwitch makes a table narrower by leaving out the switch; a table of switches keeps it.
func leaveOutSwitch(by stats.By) func(*cli.Table) {
	if by == stats.Switch {
		return func(*cli.Table) {}
	}
	return cli.LeaveOutTheOnly("SWITCH")
}

// shortNumbers makes numbers narrower: 34.8G.
func shortNumbers(headings ...string) func(*cli.Table) {
	return func(t *cli.Table) {
		of := cli.Columns(t.Head, headings...)
		for _, row := range t.Rows {
			for c := range row {
				if n, err := strconv.ParseUint(row[c], 10, 64); of[c] && err == nil {
					row[c] = stats.Short(float64(n))
				}
			}
		}
	}
}

// paintLosses colours what was dropped or lost, as "heddle top" does.
func paintLosses(d cli.Deps, head []string) func(int, string, string) string {
	of := cli.Columns(head, "IN DROPS", "OUT DROPS", "LOST", "IN DROP/S", "OUT DROP/S", "LOST/S")
	return func(col int, text, padded string) string {
		if of[col] && text != "0" && text != "-" {
			return d.Coloured(cli.Yellow, padded)
		}
		return padded
	}
}
