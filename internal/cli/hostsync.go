package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

func newHostSync(d Deps) *cobra.Command {
	t, o := &fleetTarget{}, &output{}
	wait := 10 * time.Second
	c := &cobra.Command{
		Use: "sync [HOST]", Short: "Send hosts again what they are to have",
		Long: "Send a host, or all hosts, again what they are to have, and wait until it is active there: also what " +
			"a host could not activate before, such as with a device that is there now. DIFFERS is how many " +
			"objects were not active as the definition has them. What is active already stays as it is, without " +
			"an effect on frames.\n\n" +
			"The exit status is 1 when a host is away, or does not have the definition active.",
		Example: "  heddle host sync\n  heddle host sync esx1 --wait 1m", Args: atMost("HOST"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if wait <= 0 {
				return usagef("--wait %s: it is a time above 0, such as 10s", wait)
			}
			list, err := askFleet(c, t, wait, func(ctx context.Context, f *api.Fleet) (*api.SyncedHosts, error) {
				return f.Sync(ctx, strings.Join(args, ""), wait)
			})
			if err != nil {
				return err
			}
			if err := o.print(d, list, func(w io.Writer) error { return syncTable(list).write(w) }); err != nil {
				return err
			}
			return synced(d, list)
		},
	}
	c.Flags().DurationVar(&wait, "wait", wait, "how long to wait for the hosts")
	o.flag(c)
	t.flag(d, c, defaultController)
	return c
}

func syncTable(list *api.SyncedHosts) *table {
	head := []string{"HOST", "BEFORE", "DIFFERS", "STATE", "PROBLEM"}
	tab := &table{head: head, right: columns(head, "DIFFERS"), keep: columns(head, "BEFORE", "DIFFERS", "STATE"),
		names: columns(head, "HOST")}
	for _, h := range list.Hosts {
		tab.add(h.Host, string(h.Before), fmt.Sprint(len(h.Differences)), string(h.State),
			dash(strings.Join(h.Problems, "; ")))
	}
	return tab
}

// synced is the error when not all hosts have the definition active.
func synced(d Deps, list *api.SyncedHosts) error {
	bad := len(list.Unreachable) > 0
	for _, name := range list.Unreachable {
		fmt.Fprintf(d.Stderr, "heddle: controller %s does not answer: its hosts were not sent anything\n",
			printable.Text(name))
	}
	for _, h := range list.Hosts {
		bad = bad || h.State != api.HostUp && h.State != api.HostWarning && h.State != api.HostDown
	}
	if bad {
		return &SilentError{Status: ExitFailure}
	}
	return nil
}
