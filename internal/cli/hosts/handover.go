package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newHostHandOver(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	var q api.HandOver
	c := &cobra.Command{
		Use: "hand-over", Short: "Hand this host's own switches over to the controllers",
		Long: "Hand the switches that both this host's own file and the controllers' definition declare over to the " +
			"controllers, without a change for guests where both say the same. Until then the host is out-of-sync: " +
			"each of " +
			"its switches belongs to one of the two. Ports of the file become ports connected by command.\n\n" +
			"--dry-run shows the differences between the file and the definition.",
		Example: "  heddle host hand-over --dry-run\n  heddle host hand-over", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			out, err := cli.AskTried(d, c, t, q.Window, func(ctx context.Context, s api.Service) (*api.Applied, error) {
				return s.HandOver(ctx, q)
			})
			if err != nil {
				return o.PrintReverted(d, err)
			}
			cli.PrintWarnings(d, out)
			cli.PrintTrial(d, out.Trial)
			return o.Print(d, out, func(w io.Writer) error {
				return errors.Join(cli.PrintChanges(d, w, out), printHandedOver(c, t, w, out))
			})
		},
	}
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "only print what would change")
	cli.WindowFlag(c, &q.Window)
	o.Flag(c)
	t.Flags(d, c)
	return c
}

// printHandedOver says which switches of this host are the controllers' after a hand-over that was made.
func printHandedOver(c *cobra.Command, t *cli.Target, w io.Writer, out *api.Applied) error {
	if out.DryRun {
		return nil
	}
	m, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
		return s.Membership(ctx)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "this host has by the controllers' definition now: %s\n", strings.Join(m.Switches, ", "))
	return err
}
