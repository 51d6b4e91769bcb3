package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/diagnose/stats"
	"heddle/internal/spec/known"
)

// statsQuery is one run of "heddle stats" with its flags.
type statsQuery struct {
	d        Deps
	all      bool // hosts are asked
	t        *target
	o        output
	sw       string
	by       string
	zero     bool
	check    bool
	rates    bool
	watch    bool
	interval time.Duration
	count    int
}

func newStats(d Deps) *cobra.Command {
	q := &statsQuery{d: d}
	t := &target{}
	c := &cobra.Command{
		Use: "stats [PORT]", Short: "Show the counters of ports, port groups and switches",
		Long: "Show the counters of all ports and uplinks, one line each, or all counters of one port: the 18 " +
			"counters of a vSphere distributed switch under the same names, and frames dropped and copies refused " +
			"by reason. In is from the port's owner into the switch. Counters that are 0 are left out of tables " +
			"unless --zero is given.\n\n" +
			"Frames to a guest in another namespace are missing in the host device's own counters. LOST is what " +
			"the devices at both ends lost by their own counters. A terminal that is too narrow for the table gets " +
			"fewer columns and shorter numbers (34.8G).\n\n" +
			"--check tests the counters: each received frame must be delivered, or dropped with one reason. For " +
			"ports without traffic the test is exact. While frames pass, the readings only bound the number of " +
			"frames without a fate.",
		Example: "  heddle stats\n  heddle stats vm1/eth0\n  heddle stats --by port-group --rates\n  heddle stats " +
			"--watch --interval 2s\n  heddle stats --check\n" +
			"  heddle --controller /run/heddle-controller/api.sock stats --by switch",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes at most one PORT; %d given", c.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.valid(len(args) > 0); err != nil {
				return err
			}
			if err := q.sources(); err != nil {
				return err
			}
			switch {
			case q.check:
				return q.accounts(c)
			case q.watch || q.rates:
				return q.follow(c, args)
			}
			return q.once(c, args)
		},
	}
	t.flags(d, c)
	q.t = t.looking(d, c)
	q.o.flag(c)
	switchFlag(c, &q.sw)
	f := c.Flags()
	f.BoolVar(&q.zero, "zero", false, "show counters that are 0, too")
	f.StringVar(&q.by, "by", string(stats.Port), "one line for each: "+strings.Join(stats.Kinds(), ", "))
	f.BoolVar(&q.check, "check", false, "check that the counters add up; exit with status 1 if they do not")
	f.BoolVar(&q.rates, "rates", false, "measure for an interval and show rates per second")
	f.BoolVar(&q.watch, "watch", false,
		"show rates every interval, until interrupted; with -o json one document a line")
	f.DurationVar(&q.interval, "interval", time.Second, "time between two readings")
	f.IntVar(&q.count, "count", 0, "with --watch, how often; 0 is without end")
	_ = c.RegisterFlagCompletionFunc("by", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return stats.Kinds(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

func (q *statsQuery) valid(one bool) error {
	q.by = spelt(q.by)
	switch {
	case q.o.check() != nil:
		return q.o.check()
	case !stats.By(q.by).Valid():
		return usagef("--by %q: use one of %s", q.by, strings.Join(stats.Kinds(), ", "))
	case one && stats.By(q.by) != stats.Port:
		return usagef("one port's counters are no sum: leave out --by, or the PORT")
	case q.check && (one || q.rates || q.watch):
		return usagef("--check is about all ports, and about no rates: give it alone")
	case q.interval <= 0:
		return usagef("--interval %v: it is a time above 0, such as 1s", q.interval)
	case q.count < 0:
		return usagef("--count %d: it is 0 or more", q.count)
	}
	return nil
}

// sources finds out whether all hosts are asked.
func (q *statsQuery) sources() (err error) {
	q.all, err = q.t.everywhere()
	return err
}

// read asks for all counters, of one switch where --switch says so, and of one port or uplink where one is named.
func (q *statsQuery) read(c *cobra.Command, args []string) (list []said[[]api.Stats], away *absent, err error) {
	one := func(t *target) ([]api.Stats, error) {
		all, err := ask(c, t, func(ctx context.Context, s api.Service) ([]api.Stats, error) { return s.Stats(ctx) })
		if err != nil {
			return nil, err
		}
		if len(args) > 0 {
			s, err := q.pick(c, t, all, args[0])
			return []api.Stats{s}, err
		}
		if all = ofSwitch(all, q.sw, func(s api.Stats) string { return s.Switch }); len(all) == 0 {
			return all, t.has(c, q.sw, "")
		}
		return all, nil
	}
	if q.all {
		return askHosts(c, q.t, one)
	}
	all, err := one(q.t)
	return []said[[]api.Stats]{{"", all}}, &absent{}, err
}

// pick returns the counters of one port or uplink.
func (q *statsQuery) pick(c *cobra.Command, t *target, all []api.Stats, name string) (api.Stats, error) {
	n := known.Names{What: "port or uplink"}
	if s, err := t.state(c); err == nil { // for devices, which have no counters of their own here
		n = endsOf(s)
	}
	return pick(all, n, name, q.sw, func(s api.Stats) (string, string) { return s.Switch, s.Name })
}

// once shows the counters once.
func (q *statsQuery) once(c *cobra.Command, args []string) error {
	all, away, err := q.read(c, args)
	if err != nil {
		return err
	}
	if by := stats.By(q.by); by != stats.Port || len(args) == 0 || len(all) != 1 {
		lines := q.lines(nil, all)
		for i := range lines {
			lines[i].Rates = nil
		}
		table := func(w io.Writer) error { return statsTable(w, q.d, lines, by, q.all) }
		if by != stats.Port {
			err = q.o.print(q.d, q.objects(lines), table)
		} else if q.all {
			err = q.o.print(q.d, ofHosts(all), table)
		} else {
			err = q.o.print(q.d, all[0].answer, table)
		}
		return errors.Join(err, away.report(q.d))
	}
	one := all[0]
	var object any = one.answer[0]
	if q.all {
		object = hosted[api.Stats]{one.host, one.answer[0]}
	}
	err = q.o.print(q.d, object, func(w io.Writer) error { return statsOne(w, q.d, one.answer[0], q.zero, one.host) })
	return errors.Join(err, away.report(q.d))
}

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

// follow shows the rates per second, once or again and again.
func (q *statsQuery) follow(c *cobra.Command, args []string) error {
	ctx := c.Context()
	before := map[string]stats.Reading{}
	count := q.count
	if !q.watch {
		count = 1
	}
	for n := 0; count == 0 || n <= count; n++ {
		all, away, err := q.read(c, args)
		if ctx.Err() != nil {
			return nil // interrupted after it has shown what there was
		}
		if err != nil {
			return err
		}
		if n > 0 {
			if err := q.show(q.lines(before, all), n); err != nil {
				return err
			}
		}
		clear(before)
		for _, s := range all {
			before[s.host] = stats.Read(s.answer)
		}
		if n == count && count > 0 {
			return away.report(q.d)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(q.interval):
		}
	}
	return nil
}

func (q *statsQuery) show(lines []hostLine, n int) error {
	if q.watch && q.o.format == "json" {
		return json.NewEncoder(q.d.Stdout).Encode(q.objects(lines))
	}
	if q.watch && n > 1 {
		between := "\n"
		if q.o.format == "yaml" {
			between = "---\n"
		}
		if _, err := io.WriteString(q.d.Stdout, between); err != nil {
			return err
		}
	}
	return q.o.print(q.d, q.objects(lines), func(w io.Writer) error {
		return ratesTable(w, q.d, lines, stats.By(q.by), q.all)
	})
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

func statsOne(w io.Writer, d Deps, s api.Stats, zero bool, host string) error {
	what, where := "port", ""
	if s.Uplink {
		what = "uplink"
	}
	if host != "" {
		where = " on host " + host
	}
	if _, err := fmt.Fprintf(w, "%s %s of switch %s%s\n\n", what, s.Name, s.Switch, where); err != nil {
		return err
	}
	tab := &table{head: []string{"COUNTER", "VALUE"}, right: map[int]bool{1: true}}
	lost := map[int]bool{} // rows of dropped frames
	tab.paintRow = func(row, col int, text, padded string) string {
		if col == 1 && lost[row] && text != "0" {
			return d.coloured(yellow, padded)
		}
		return padded
	}
	of := map[string]uint64{"packetsInDropped": stats.Filtered(s.Drops, s.Uplink),
		"packetsOutDropped": stats.Filtered(s.Refused, s.Uplink)}
	filtered := false
	for _, c := range append(append([]api.Counter{}, s.Counters...), s.Extra...) {
		if c.Value > 0 || zero {
			tab.add(c.Name, strconv.FormatUint(c.Value, 10))
		}
		if n := of[c.Name]; n > 0 {
			filtered = true
			tab.add("  of these filtered", strconv.FormatUint(n, 10))
		}
	}
	reasonRow := func(what string, r api.ReasonNo) {
		known, ok := abi.ParseReason(r.Reason)
		lost[len(tab.rows)] = !ok || !reasons.ByDesign(known, s.Uplink)
		tab.add(what+", "+r.Reason, strconv.FormatUint(r.Value, 10))
	}
	for _, r := range s.Drops {
		reasonRow("dropped", r)
	}
	for _, r := range s.Refused {
		reasonRow("refused", r)
	}
	addLosses(tab, "device", s.Device, zero, lost)
	addLosses(tab, "its other end", s.Peer, zero, lost)
	if len(tab.rows) == 0 {
		_, err := fmt.Fprintln(w, "all counters are 0 (--zero shows them)")
		return err
	}
	if err := tab.write(w); err != nil || !filtered {
		return err
	}
	_, err := fmt.Fprint(w, `
filtered: duplicates that the checks of uplinks leave out, and frames for nobody
here. vSphere's counters have them among what is dropped. They are normal:
"heddle stats" has them as FILTERED.
`)
	return err
}

// addLosses adds the frames that a device itself counts as lost.
func addLosses(tab *table, what string, l *api.DeviceLosses, zero bool, lost map[int]bool) {
	if l == nil {
		return
	}
	if l.Device != "" {
		what += " " + l.Device
	}
	for _, c := range []struct {
		name  string
		value uint64
		lost  bool
	}{{"unwanted (rx dropped)", l.RxDropped, false}, {"tx dropped", l.TxDropped, true},
		{"rx errors", l.RxErrors, true}, {"tx errors", l.TxErrors, true}, {"rx missed", l.RxMissed, true}} {
		if c.value > 0 || zero {
			lost[len(tab.rows)] = c.lost
			tab.add(what+", "+c.name, strconv.FormatUint(c.value, 10))
		}
	}
}
