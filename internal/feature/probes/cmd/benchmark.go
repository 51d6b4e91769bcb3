package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// benchmarkSpare is how much longer than it sends a benchmark may take: until all hosts have begun, and answered.
const benchmarkSpare = time.Minute

// benchmarkFlags are those of "heddle health benchmark".
type benchmarkFlags struct {
	api.BenchmarkOptions
	rate string
	all  bool
	page cli.ReportFile
}

func newHealthBenchmark(d cli.Deps) *cobra.Command {
	t, o, q := &cli.FleetTarget{}, &cli.Output{}, &benchmarkFlags{}
	c := &cobra.Command{
		Use: "benchmark", Short: "Measure the network: every host to every host at once",
		Long: "Have every host send to every other one at once, by each uplink that takes part in the health check, " +
			"and show the throughput between each two hosts, which pairs are slow, lose frames or get none, and what " +
			"these share that the others do not: an uplink, a host, a physical switch, a VLAN.\n\n" +
			"Each uplink sends and receives --rate at most, and never more than a tenth of its speed; the frames " +
			"have the lowest priority in the host and in the VLAN tag (802.1Q priority 1, background), leave one by " +
			"one rather than in bursts, and go only to an uplink that answers, so that other traffic goes first and " +
			"nothing is flooded. One benchmark runs at a time. It ends when you interrupt it (Ctrl-C), and when a " +
			"host goes away. It takes the role operator or admin for the whole cluster, and is written to the audit " +
			"log.\n\n" +
			"The exit status is 1 when a pair has a fault or a host took no part that was to.",
		Example: "  heddle health benchmark --context lab\n" +
			"  heddle health benchmark --context lab --hosts esx1,esx2 --rate 200M\n" +
			"  heddle health benchmark --context lab --label rack=a --duration 20s -o json\n" +
			"  heddle health benchmark --context lab --report benchmark.html",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(o.Check(), q.page.Check(c, args)); err != nil {
				return err
			}
			if err := q.read(); err != nil {
				return err
			}
			return q.run(d, c, t, o)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&q.Hosts, "hosts", nil, "these hosts alone, by name; two at least (default: all)")
	f.StringToStringVar(&q.Labels, "label", nil, "the hosts with this label alone, NAME=VALUE; may be repeated")
	f.StringVar(&q.rate, "rate", "10M", "the most that each uplink sends and receives, in bit/s, with k, M or G: "+
		"100k to 1G")
	f.DurationVar(&q.Duration, "duration", 5*time.Second, "how long all send, 1s to 1m")
	f.BoolVar(&q.all, "pairs", false, "show all pairs of uplinks, not those with a fault alone")
	q.page.Flag(c)
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}

// read checks the flags.
func (q *benchmarkFlags) read() (err error) {
	if q.Rate, err = bitRate(q.rate); err != nil {
		return err
	}
	if q.Duration < time.Second || q.Duration > time.Minute {
		return cli.Usagef("--duration %v: it is a time from 1s to 1m", q.Duration)
	}
	slices.Sort(q.Hosts)
	if q.Hosts = slices.Compact(q.Hosts); len(q.Hosts) == 1 {
		return cli.Usagef("--hosts %s: a benchmark takes two hosts at least", q.Hosts[0])
	}
	return nil
}

// bitRate reads a rate in bits per second.
func bitRate(text string) (uint64, error) {
	number, factor := text, 1.0
	for unit, f := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			number, factor = n, f
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if rate := v * factor; err == nil && rate >= 1e5 && rate <= 1e9 {
		return uint64(rate), nil
	}
	return 0, cli.Usagef("--rate %s: it is a rate from 100k to 1G, in bit/s", printable.Short(text, 40))
}

func (q *benchmarkFlags) run(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, o *cli.Output) error {
	b, err := cli.AskFleet(c, t, q.Duration+benchmarkSpare, func(ctx context.Context,
		f *api.Fleet) (*api.NetworkBenchmark, error) {
		return f.Benchmark(ctx, q.BenchmarkOptions, func(text string) {
			fmt.Fprintln(d.Stderr, printable.Text(text))
		})
	})
	if err != nil {
		return err
	}
	if err := o.Print(d, b, func(w io.Writer) error { return q.write(w, d, b) }); err != nil {
		return err
	}
	if err := q.page.Write(q.report(b, time.Now())); err != nil {
		return err
	}
	if b.Stopped != "" || len(b.Findings)+len(b.Without) > 0 {
		return &cli.SilentError{Status: cli.ExitFailure}
	}
	return nil
}

// mostInMatrix is how many hosts have a matrix: with more, it is wider than a terminal.
const mostInMatrix = 8

// write prints the matrix, the pairs with faults, and what follows.
func (q *benchmarkFlags) write(w io.Writer, d cli.Deps, b *api.NetworkBenchmark) error {
	if len(b.Pairs) > 0 && len(b.Hosts) <= mostInMatrix {
		if err := benchmarkMatrix(b).Write(w); err != nil {
			return err
		}
	}
	if tab := benchmarkTable(b, q.all); len(tab.Rows) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := tab.Write(w); err != nil {
			return err
		}
	}
	lines := benchmarkLines(b)
	for i, text := range lines {
		level, colour := "wrong", cli.Red
		if i == len(lines)-1 {
			level = ""
		}
		all := cli.Wrap(text, d.TextWidth()-7)
		if level == "" {
			all = cli.Wrap(text, d.TextWidth())
			if _, err := fmt.Fprintf(w, "\n%s\n", strings.Join(all, "\n")); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%s  %s\n", d.Coloured(colour, level), strings.Join(all, "\n       "))
		if err != nil {
			return err
		}
	}
	return nil
}

// benchmarkLines are what is wrong, and the summary last.
func benchmarkLines(b *api.NetworkBenchmark) (lines []string) {
	if b.Stopped != "" {
		lines = append(lines, "ended early: "+b.Stopped)
	}
	for _, h := range b.Without {
		lines = append(lines, "host "+h.Host+" took no part: "+h.Reason)
	}
	lines = append(lines, b.Findings...)
	sum, lost, sent := uint64(0), uint64(0), uint64(0)
	for _, p := range b.Pairs {
		sum, lost, sent = sum+p.Throughput, lost+p.Lost, sent+p.Sent
	}
	for i := range lines {
		lines[i] = printable.Text(lines[i])
	}
	return append(lines, fmt.Sprintf("%s, %s: %sbit/s together, %d of %d frames lost; %sbit/s at most by each uplink, "+
		"for %v", printable.Count(len(b.Hosts), "host", "hosts"), printable.Count(len(b.Pairs), "pair", "pairs"),
		scaled(sum), lost, sent, scaled(b.Rate), b.Duration))
}

// benchmarkMatrix is how much arrived from each host at each other one, by all uplinks together.
func benchmarkMatrix(b *api.NetworkBenchmark) *cli.Table {
	head := append([]string{"FROM"}, b.Hosts...)
	tab := &cli.Table{Head: head, Right: map[int]bool{}, Names: map[int]bool{0: true}}
	sums := map[[2]string]uint64{}
	there := map[[2]string]bool{}
	for _, p := range b.Pairs {
		k := [2]string{p.From, p.To}
		sums[k], there[k] = sums[k]+p.Throughput, true
	}
	for _, from := range b.Hosts {
		cells := []string{printable.Text(from)}
		for i, to := range b.Hosts {
			tab.Right[i+1] = true
			cell := "-"
			if there[[2]string{from, to}] {
				cell = scaled(sums[[2]string{from, to}])
			}
			cells = append(cells, cell)
		}
		tab.Add(cells...)
	}
	return tab
}

// benchmarkTable has the pairs of uplinks with a fault, or all.
func benchmarkTable(b *api.NetworkBenchmark, all bool) *cli.Table {
	head := []string{"FROM", "TO", "VLAN", "SENT", "ARRIVED", "LOST", "DUP", "P50", "P99", "FAULTS"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "SENT", "ARRIVED", "LOST", "DUP", "P50", "P99"),
		Keep: cli.Columns(head, "VLAN", "SENT", "ARRIVED", "LOST", "DUP", "P50", "P99"), Names: cli.Columns(head,
			"FROM", "TO")}
	for _, p := range b.Pairs {
		if !all && len(p.Faults) == 0 {
			continue
		}
		vlan := "-"
		if p.VLAN > 0 {
			vlan = strconv.Itoa(int(p.VLAN))
		}
		tab.Add(printable.Text(p.From+"/"+p.FromUplink), printable.Text(p.To+"/"+p.ToUplink), vlan, scaled(p.Offered),
			scaled(p.Throughput), share(p.Lost, p.Sent), strconv.FormatUint(p.Duplicates, 10), took(p.P50), took(p.P99),
			cli.Dash(strings.Join(p.Faults, ", ")))
	}
	return tab
}

// scaled is a number of bits per second with a unit.
func scaled(v uint64) string {
	for _, u := range []struct {
		from float64
		unit string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if float64(v) >= u.from {
			return strconv.FormatFloat(float64(v)/u.from, 'g', 3, 64) + u.unit
		}
	}
	return strconv.FormatUint(v, 10)
}

// share is which part of a whole something is, in percent.
func share(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + "%"
}

// took is a time for a table; "-" where there is none.
func took(v time.Duration) string {
	if v == 0 {
		return "-"
	}
	return v.Round(max(time.Microsecond, v/1000)).String()
}
