package hosts

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func newHostSync(d cli.Deps) *cobra.Command {
	t, o := &cli.FleetTarget{}, &cli.Output{}
	wait := 10 * time.Second
	var look bool
	c := &cobra.Command{
		Use: "sync [HOST]", Short: "Send hosts again what they are to have, and say what differed",
		Long: "Send a host, or all hosts, again what they are to have, and wait until it is active there: also what " +
			"a host could not activate before, such as with a device that is there now. DIFFERS is how many " +
			"objects were not active as the definition has them, SINCE when the definition was first changed to " +
			"what the host did not have; each such object is named below. Of a host that is away it is what it had " +
			"when it went. What is active already stays as it is, without an effect on frames.\n\n" +
			"With --dry-run nothing is sent: it only says what differs.\n\n" +
			"The exit status is 1 when a host is away, or does not have the definition active.",
		Example: "  heddle host sync\n  heddle host sync esx1 --wait 1m\n  heddle host sync --dry-run -o json",
		Args:    cli.AtMost("HOST"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if wait <= 0 {
				return cli.Usagef("--wait %s: it is a time above 0, such as 10s", wait)
			}
			list, err := cli.AskFleet(c, t, wait, func(ctx context.Context, f *api.Fleet) (*api.SyncedHosts, error) {
				return f.Sync(ctx, strings.Join(args, ""), wait, look)
			})
			if err != nil {
				return err
			}
			if err := o.Print(d, list, func(w io.Writer) error { return printSynced(w, list) }); err != nil {
				return err
			}
			return synced(d, list)
		},
	}
	c.Flags().DurationVar(&wait, "wait", wait, "how long to wait for the hosts")
	c.Flags().BoolVar(&look, "dry-run", false, "send nothing, and only say what differs")
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}

func printSynced(w io.Writer, list *api.SyncedHosts) error {
	head := []string{"HOST", "BEFORE", "DIFFERS", "SINCE", "STATE", "PROBLEM"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "DIFFERS"), Keep: cli.Columns(head, "BEFORE", "DIFFERS",
		"SINCE",
		"STATE"), Names: cli.Columns(head, "HOST")}
	var lines []string
	for _, h := range list.Hosts {
		var since time.Time
		for _, o := range h.Drift {
			if since.IsZero() || !o.Since.IsZero() && o.Since.Before(since) {
				since = o.Since
			}
			lines = append(lines, printable.Text(h.Host)+": "+driftLine(o))
		}
		tab.Add(h.Host, string(h.Before), fmt.Sprint(len(h.Differences)), sinceText(since), string(h.State),
			cli.Dash(strings.Join(h.Problems, "; ")))
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func sinceText(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Local().Format(time.DateTime)
}

// driftLine says how an object differs, since when, and by which change.
func driftLine(o api.HostDrift) string {
	is := "is " + string(o.Kind)
	if o.Kind == api.DriftExtra {
		is = "is there still"
	}
	line := printable.Text(o.Object) + " " + is
	if o.Since.IsZero() {
		return line
	}
	line += fmt.Sprintf(" since %s (revision %d, by %s", sinceText(o.Since), o.Revision, printable.Text(o.Who))
	if o.Message != "" {
		line += ": " + printable.Text(o.Message)
	}
	return line + ")"
}

// synced is the error when not all hosts have the definition active.
func synced(d cli.Deps, list *api.SyncedHosts) error {
	bad := len(list.Unreachable) > 0
	for _, name := range list.Unreachable {
		fmt.Fprintf(d.Stderr, "heddle: controller %s does not answer: its hosts were not sent anything\n",
			printable.Text(name))
	}
	for _, h := range list.Hosts {
		bad = bad || h.State != api.HostUp && h.State != api.HostWarning && h.State != api.HostDown
	}
	if bad {
		return &cli.SilentError{Status: cli.ExitFailure}
	}
	return nil
}
