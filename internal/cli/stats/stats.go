package stats

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose/stats"
	"heddle/internal/spec/known"
)

// statsQuery is one run of "heddle stats" with its flags.
type statsQuery struct {
	d        cli.Deps
	all      bool // hosts are asked
	t        *cli.Target
	o        cli.Output
	sw       string
	by       string
	zero     bool
	check    bool
	rates    bool
	watch    bool
	interval time.Duration
	count    int
}

func New(d cli.Deps) *cobra.Command {
	q := &statsQuery{d: d}
	t := &cli.Target{}
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
				return cli.Usagef("%s takes at most one PORT; %d given", c.CommandPath(), len(args))
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
	t.Flags(d, c)
	q.t = t.Looking(d, c)
	q.o.Flag(c)
	cli.SwitchFlag(c, &q.sw)
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
	q.by = cli.Spelt(q.by)
	switch {
	case q.o.Check() != nil:
		return q.o.Check()
	case !stats.By(q.by).Valid():
		return cli.Usagef("--by %q: use one of %s", q.by, strings.Join(stats.Kinds(), ", "))
	case one && stats.By(q.by) != stats.Port:
		return cli.Usagef("one port's counters are no sum: leave out --by, or the PORT")
	case q.check && (one || q.rates || q.watch):
		return cli.Usagef("--check is about all ports, and about no rates: give it alone")
	case q.interval <= 0:
		return cli.Usagef("--interval %v: it is a time above 0, such as 1s", q.interval)
	case q.count < 0:
		return cli.Usagef("--count %d: it is 0 or more", q.count)
	}
	return nil
}

// sources finds out whether all hosts are asked.
func (q *statsQuery) sources() (err error) {
	q.all, err = q.t.Everywhere()
	return err
}

// read asks for all counters, of one switch where --switch says so, and of one port or uplink where one is named.
func (q *statsQuery) read(c *cobra.Command, args []string) (list []cli.Said[[]api.Stats], away *cli.Absent, err error) {
	one := func(t *cli.Target) ([]api.Stats, error) {
		all, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.Stats, error) { return s.Stats(ctx) })
		if err != nil {
			return nil, err
		}
		if len(args) > 0 {
			s, err := q.pick(c, t, all, args[0])
			return []api.Stats{s}, err
		}
		if all = cli.OfSwitch(all, q.sw, func(s api.Stats) string { return s.Switch }); len(all) == 0 {
			return all, t.Has(c, q.sw, "")
		}
		return all, nil
	}
	if q.all {
		return cli.AskHosts(c, q.t, one)
	}
	all, err := one(q.t)
	return []cli.Said[[]api.Stats]{{Answer: all}}, &cli.Absent{}, err
}

// pick returns the counters of one port or uplink.
func (q *statsQuery) pick(c *cobra.Command, t *cli.Target, all []api.Stats, name string) (api.Stats, error) {
	n := known.Names{What: "port or uplink"}
	if s, err := t.State(c); err == nil { // for devices, which have no counters of their own here
		n = cli.EndsOf(s)
	}
	return cli.Pick(all, n, name, q.sw, func(s api.Stats) (string, string) { return s.Switch, s.Name })
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
			err = q.o.Print(q.d, q.objects(lines), table)
		} else if q.all {
			err = q.o.Print(q.d, cli.OfHosts(all), table)
		} else {
			err = q.o.Print(q.d, all[0].Answer, table)
		}
		return errors.Join(err, away.Report(q.d))
	}
	one := all[0]
	var object any = one.Answer[0]
	if q.all {
		object = cli.Hosted[api.Stats]{Host: one.Host, Of: one.Answer[0]}
	}
	err = q.o.Print(q.d, object, func(w io.Writer) error { return statsOne(w, q.d, one.Answer[0], q.zero, one.Host) })
	return errors.Join(err, away.Report(q.d))
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
			before[s.Host] = stats.Read(s.Answer)
		}
		if n == count && count > 0 {
			return away.Report(q.d)
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
	if q.watch && q.o.Format == "json" {
		return json.NewEncoder(q.d.Stdout).Encode(q.objects(lines))
	}
	if q.watch && n > 1 {
		between := "\n"
		if q.o.Format == "yaml" {
			between = "---\n"
		}
		if _, err := io.WriteString(q.d.Stdout, between); err != nil {
			return err
		}
	}
	return q.o.Print(q.d, q.objects(lines), func(w io.Writer) error {
		return ratesTable(w, q.d, lines, stats.By(q.by), q.all)
	})
}
