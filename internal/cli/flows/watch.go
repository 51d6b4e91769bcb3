package flows

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func newFlowsWatch(d cli.Deps, t *cli.Target) *cobra.Command {
	f, out, q := api.FlowFilter{}, &cli.Stream{}, api.FlowSumQuery{Of: api.SumsOfRecords, Limit: 20}
	c := &cobra.Command{
		Use: "watch", Short: "Follow the flow records as they are made",
		Long: "Prints every flow record when it is made, also across restarts of the agent, until interrupted. A " +
			"record is made when a flow ends (idle, end), repeatedly while it lasts (active), when its port goes " +
			"or metering stops (forced), and when the agent's table is full (no-resources). Counts are those " +
			"since the flow's previous record.\n\n" +
			"With --by, the records of each interval are summed up and printed when it ends.\n\n" +
			"With --controller the records of all hosts are followed, also through ends of hosts and controllers.",
		Example: "  heddle flows watch\n  heddle flows watch --port vm1/eth0 -o json\n  heddle flows watch --by " +
			"address --interval 5m", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			all, err := t.Everywhere()
			if err != nil {
				return err
			}
			q.FlowFilter = f
			if all && c.Flags().Changed("by") {
				return watchSumsOfHosts(c, d, t, out, q)
			}
			if c.Flags().Changed("by") {
				client, err := t.Client()
				if err != nil {
					return err
				}
				return watchSums(c.Context(), d, client, out, q)
			}
			for _, name := range []string{"interval", "sort", "limit"} {
				if c.Flags().Changed(name) {
					return cli.Usagef("--%s is for --by", name)
				}
			}
			if all {
				return watchFlowsOfHosts(c, d, t, out, f)
			}
			client, err := t.Client()
			if err != nil {
				return err
			}
			w := &flowWatcher{d: d, client: client, only: f, out: out}
			return w.run(c.Context())
		},
	}
	t = t.Looking(d, c)
	out.Flag(c, "")
	flowFilterFlags(c, &f)
	byFlag(c, &q.By)
	c.Flags().DurationVar(&q.Interval, "interval", time.Minute, "with --by, how long records are summed up")
	c.Flags().StringVar(&q.Sort, "sort", "bytes", "with --by, what comes first: the most "+
		strings.Join(api.FlowSumSorts(), ", "))
	c.Flags().IntVar(&q.Limit, "limit", 20, fmt.Sprintf("with --by, how many rows at most: 1–%d", api.MaxFlowTop))
	return c
}

// flowWatcher is one run of "heddle flows watch".
type flowWatcher struct {
	d      cli.Deps
	client api.Service
	only   api.FlowFilter
	out    *cli.Stream
	note   api.FlowNote // the last note shown
}

// run follows the records of the agent, and of the agent that replaces it.
func (w *flowWatcher) run(ctx context.Context) error {
	ended := func() {
		fmt.Fprintln(w.d.Stderr, "the agent has ended; the switch goes on counting, and records are followed when it "+
			"is back")
	}
	return cli.FollowAgents(ctx, ended, func(heard func()) error {
		return w.client.FlowRecords(ctx, w.only, func(b api.FlowRecords) error { heard(); return w.print(&b) })
	})
}

func (w *flowWatcher) print(b *api.FlowRecords) error {
	if b.Missed > 0 {
		w.d.Warn(missedRecords(b.Missed))
	}
	if !b.Note.None() && !b.Note.Same(w.note) {
		fmt.Fprintln(w.d.Stderr, printable.Text(b.Note.Text))
	}
	if len(b.Records) == 0 {
		w.note = b.Note
	}
	for i := range b.Records {
		var err error
		if w.out.Text() {
			err = flowRecordLine(w.d, &b.Records[i])
		} else {
			err = w.out.Write(w.d.Stdout, &b.Records[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// missedRecords returns a note that records arrived too fast.
func missedRecords(n uint64) string {
	return printable.Count(n, "record came faster than it was taken and is missing here",
		"records came faster than they were taken and are missing here")
}

// passed returns an amount of traffic: "1 packet, 60 bytes".
func passed(packets, bytes uint64) string {
	return printable.Count(packets, "packet", "packets") + ", " + printable.Count(bytes, "byte", "bytes")
}

func flowRecordLine(d cli.Deps, r *api.FlowRecord) error {
	_, err := fmt.Fprintf(d.Stdout, "%s  %-12s  %s %s %s  %s → %s  %s in %s",
		r.Last.Local().Format("2006-01-02 15:04:05.000"), r.Reason, seenAt(r.Flow),
		r.Direction, protocolText(r.Flow), flowEnd(r.Source, r.SourceMAC, r.SourcePort),
		flowEnd(r.Destination, r.DestinationMAC, r.DestinationPort),
		passed(r.Packets, r.Bytes), r.Last.Sub(r.First))
	if err == nil && r.Reverse != nil {
		_, err = fmt.Fprint(d.Stdout, "; back "+passed(r.Reverse.Packets, r.Reverse.Bytes))
	}
	if err == nil && len(r.TCPFlags) > 0 {
		_, err = fmt.Fprintf(d.Stdout, "; %s", cli.Joined(r.TCPFlags, " "))
	}
	if err == nil {
		_, err = fmt.Fprintln(d.Stdout)
	}
	return err
}
