package topcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/top"
)

// topView is one run of "heddle top".
type topView struct {
	d     cli.Deps
	t     *cli.Target
	model top.Model
	sort  string
	batch bool
	once  bool
	count int
	out   cli.Stream
	away  *cli.Absent // at the last reading
}

func New(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	v := &topView{d: d}
	c := &cobra.Command{
		Use: "top", Short: "Show ports by rate and drops, live",
		Long: "Show ports and uplinks by rate and drops, live, with the reason of the last drop that was seen and " +
			"how long ago it was. With --controller the ports of all hosts are shown, in the order of their rates; a " +
			"host that does not answer is named. In is from the port's owner into the switch; ^ marks an uplink.\n\n" +
			"Keys: " + top.Help() + ".\n\n" +
			"Without a terminal, or with --batch, the view is printed --count times instead.",
		Example: "  heddle top\n  heddle top --sort drop-rate --filter vm1\n  heddle top -b -n 3 --interval 5s\n  " +
			"heddle top --once -o json\n  heddle --controller /run/heddle-controller/api.sock top", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := v.valid(); err != nil {
				return err
			}
			return v.run(c)
		},
	}
	t.Flags(d, c)
	v.t = t.Looking(d, c)
	f := c.Flags()
	f.DurationVar(&v.model.Interval, "interval", time.Second, "time between two readings")
	f.StringVar(&v.sort, "sort", "in-bits", "sort by: "+strings.Join(top.Columns(), ", "))
	f.BoolVar(&v.model.Up, "reverse", false, "reverse the order")
	f.StringVar(&v.model.Filter, "filter", "",
		"show only ports with this text in their name, port group or last reason")
	f.BoolVarP(&v.batch, "batch", "b", false, "print the view instead of showing it")
	f.IntVarP(&v.count, "count", "n", 0, "with --batch, how often; 0 is without end")
	f.BoolVar(&v.once, "once", false, "print it once: --batch --count 1")
	v.out.Flag(c, "; json and yaml are --batch too")
	_ = c.RegisterFlagCompletionFunc("sort", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return top.Columns(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

// shortestInterval keeps a view from occupying the agent.
const shortestInterval = 100 * time.Millisecond

func (v *topView) valid() error {
	column, ok := top.ColumnOf(v.sort)
	switch {
	case !ok:
		return cli.Usagef("--sort %q: use one of %s", v.sort, strings.Join(top.Columns(), ", "))
	case v.out.Check() != nil:
		return v.out.Check()
	case v.model.Interval < shortestInterval:
		return cli.Usagef("--interval %v: it is %v or more", v.model.Interval, shortestInterval)
	case v.count < 0:
		return cli.Usagef("--count %d: it is 0 or more", v.count)
	case v.count > 0 && !v.batch && v.out.Text():
		return cli.Usagef("--count is for --batch")
	}
	v.model.Sort = column
	return nil
}

func (v *topView) run(c *cobra.Command) error {
	read, err := v.reader(c)
	if err != nil {
		return err
	}
	in, isIn := v.d.Stdin.(*os.File)
	out, isOut := v.d.Raw.(*os.File)
	if v.once || v.batch || !v.out.Text() || !isIn || !isOut || !cli.IsTerminal(in) || !cli.IsTerminal(out) {
		if v.once || !v.batch && v.count == 0 && v.out.Text() {
			v.count = 1
		}
		return v.print(c.Context(), read)
	}
	v.d.Waits.Mute() // the view has the terminal, and says it itself
	v.model.Waits = v.d.Waits.Now
	return top.Run(c.Context(), &v.model, in, out, v.d.Colour, read)
}

// reader returns what reads the counters: of the agent here, of one host, or of all.
func (v *topView) reader(c *cobra.Command) (top.Read, error) {
	all, err := v.t.Everywhere()
	if err != nil {
		return nil, err
	}
	stats := func(t *cli.Target) ([]api.Stats, error) {
		return cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.Stats, error) { return s.Stats(ctx) })
	}
	v.model.Title = v.t.Title()
	if !all {
		return func(context.Context) (top.Reading, error) {
			list, err := stats(v.t)
			return top.Reading{Hosts: []top.HostStats{{Stats: list}}}, err
		}, nil
	}
	return func(context.Context) (r top.Reading, err error) {
		var list []cli.Said[[]api.Stats]
		list, v.away, err = cli.AskHosts(c, v.t, stats)
		if err != nil {
			return r, err
		}
		for _, s := range list {
			r.Hosts = append(r.Hosts, top.HostStats{Host: s.Host, Stats: s.Answer})
		}
		for _, h := range v.away.Hosts {
			r.Away = append(r.Away, h.Name)
		}
		return r, nil
	}, nil
}

// print writes the view every interval. A closed pipe ends it without an error.
func (v *topView) print(ctx context.Context, read top.Read) error {
	for n := 0; v.count == 0 || n <= v.count; n++ {
		all, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		v.model.UpdateHosts(all, time.Now())
		if n > 0 {
			if err := v.write(n); err != nil {
				return err
			}
		}
		if n == v.count && v.count > 0 && v.away != nil {
			return v.away.Report(v.d)
		} else if n == v.count && v.count > 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(v.model.Interval):
		}
	}
	return nil
}

func (v *topView) write(n int) error { return WriteView(v.d.Stdout, &v.out, &v.model, n) }

// BatchView is a live view that can be printed.
type BatchView interface {
	JSON(io.Writer) error
	Batch(io.Writer) error
}

// WriteView writes the n-th state of a live view if there is no terminal.
func WriteView(w io.Writer, out *cli.Stream, view BatchView, n int) error {
	if !out.Text() {
		var b bytes.Buffer
		if err := view.JSON(&b); err != nil {
			return err
		}
		return out.Write(w, json.RawMessage(b.Bytes()))
	}
	var err error
	if n > 1 {
		_, err = io.WriteString(w, "\n")
	}
	return errors.Join(err, view.Batch(w))
}
