package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe/event"
	"heddle/internal/spec/printable"
)

// follower is one run of "heddle events".
type follower struct {
	d      cli.Deps
	client api.Service
	out    cli.Stream
	eventFilter
	last int
	once bool

	started time.Time // start time of the agent whose events were printed last
	seq     uint64    // number of the last event printed
}

func New(d cli.Deps) *cobra.Command {
	t, f := &cli.Target{}, &follower{d: d}
	var look *cli.Target
	var cursor string
	c := &cobra.Command{
		Use: "events", Short: "Follow events: links, failovers, MACs, violations, changes",
		Long: "Prints the last events and then new ones as they happen, also across restarts of the agent, until " +
			"interrupted. With --controller the events of all hosts, merged by their time, also across ends of " +
			"controllers.\n\n" +
			"Kinds: " + strings.Join(eventKinds(), ", ") + ".\n\n" +
			"With --resume a file has how far each host's events were printed. The command goes on from there: what " +
			"happened meanwhile comes first. Where a host keeps it no more, or its agent has begun anew, it says on " +
			"standard error that events may be missing.",
		Example: "  heddle events\n  heddle events --kind failover,link\n  heddle events --last 100 " +
			"--no-follow -o json\n  heddle events --context lab --severity warning --since 1h\n" +
			"  heddle events --context lab --hosts 'esx1*' --resume events.at -o json",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := f.out.Check(); err != nil {
				return err
			}
			if err := f.begin(c); err != nil {
				return err
			}
			if all, err := look.Everywhere(); err != nil {
				return err
			} else if all {
				e := &fleetEvents{follower: f, c: c, t: look}
				if e.cursor, err = readCursor(cursor); err != nil {
					return err
				}
				return e.run()
			}
			if cursor != "" || len(f.hosts) > 0 {
				return cli.Usagef("--resume and --hosts are for the events of all hosts: give --controller or " +
					"--context, " +
					"and no --host")
			}
			if f.client, err = look.Client(); err != nil {
				return err
			}
			if err := f.knowsPort(c.Context()); err != nil {
				return err
			}
			return f.run(c.Context())
		},
	}
	t.Flags(d, c)
	look = t.Looking(d, c)
	f.out.Flag(c, "")
	f.flags(c)
	c.Flags().StringVar(&cursor, "resume", "", "`file` that has how far events were printed, to go on from\nthere")
	c.Flags().IntVar(&f.last, "last", 10, "how many past events to begin with; -1 is all that are kept")
	c.Flags().BoolVar(&f.once, "no-follow", false, "print the events so far and end")
	return c
}

func eventKinds() []string {
	all := event.Kinds()
	words := make([]string, len(all))
	for i, k := range all {
		words[i] = string(k)
	}
	return words
}

// knowsPort returns an error for a port or uplink that does not exist and has no kept events.
func (f *follower) knowsPort(ctx context.Context) error {
	if f.port == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
	defer cancel()
	s, err := f.client.State(ctx)
	if err != nil {
		return err
	}
	missing := cli.HasEnd(s, f.port)
	if missing == nil {
		return nil
	}
	past := false
	err = f.client.Events(ctx, api.Follow{Last: -1, NoFollow: true}, func(b api.Events) error {
		past = past || slices.ContainsFunc(b.Events, f.concerns)
		return nil
	})
	if err != nil || past {
		return err
	}
	return missing
}

// run follows the agent, and the agent that replaces it.
func (f *follower) run(ctx context.Context) error {
	q := api.Follow{Last: f.last, NoFollow: f.once}
	if f.once {
		if err := f.client.Events(ctx, q, func(b api.Events) error { return f.print(ctx, b) }); ctx.Err() == nil {
			return err
		}
		return nil
	}
	ended := func() {
		fmt.Fprintln(f.d.Stderr, "the agent has ended; the switch goes on, and its events are followed when it is back")
	}
	return cli.FollowAgents(ctx, ended, func(heard func()) error {
		err := f.client.Events(ctx, q, func(b api.Events) error { heard(); return f.print(ctx, b) })
		q = api.Follow{After: 0, Last: -1}
		return err
	})
}

func (f *follower) print(ctx context.Context, b api.Events) error {
	if !b.Started.Equal(f.started) {
		f.started, f.seq = b.Started, 0
	}
	if b.Missed > 0 && f.seq > 0 {
		f.d.Warn(printable.Count(b.Missed, "event came faster than it could be kept and is missing here",
			"events came faster than they could be kept and are missing here"))
	}
	if f.portGroup != "" {
		f.groups.learn(ctx, f.client, "", b.Events)
	}
	for _, e := range b.Events {
		if e.Seq <= f.seq {
			continue
		}
		f.seq = e.Seq
		if !f.wanted(e, "") {
			continue
		}
		if err := f.line(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) line(e event.Event) error {
	if !f.out.Text() {
		return f.out.Write(f.d.Stdout, e)
	}
	return f.words(e, "")
}

// words prints an event for people; host is the column of its host, "" for none.
func (f *follower) words(e event.Event, host string) error {
	kind := f.d.Coloured(eventColour(&e), fmt.Sprintf("%-13s", e.Kind))
	where := ""
	if e.Switch != "" {
		where = e.Switch + ": "
	}
	_, err := fmt.Fprintf(f.d.Stdout, "%s  %s%s  %s%s\n", e.Time.Local().Format("2006-01-02 15:04:05.000"), host, kind,
		where, e.Text)
	return err
}

func eventColour(e *event.Event) string {
	switch e.Severity() {
	case event.Error:
		return cli.Red
	case event.Warning:
		return cli.Yellow
	}
	return ""
}
