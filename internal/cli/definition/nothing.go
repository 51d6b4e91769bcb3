package definition

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// confirmNoSwitch is onNothing.confirm for the definition of a cluster's hosts.
func confirmNoSwitch(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, q api.Define, yes bool) error {
	if q.DryRun || yes || !spec.DefinesNothing([]byte(q.Content)) {
		return nil
	}
	q.DryRun, q.Wait = true, 0
	out, err := cli.AskFleet(c, t, timeForSize(q), func(ctx context.Context, f *api.Fleet) (*api.Defined, error) {
		return f.Define(ctx, q)
	})
	if err != nil || len(out.Changes) == 0 {
		return err
	}
	if !d.Asking {
		return cli.Usagef("%s defines no switch, so that every switch of the cluster's hosts would be removed: see "+
			"what goes with --dry-run, and add --yes if that is meant", q.File)
	}
	if err := printDefined(d, printable.NewWriter(d.Stderr, d.Mark), out, true); err != nil {
		return err
	}
	yes, err = d.Yes(c, printable.Text(q.File)+" defines no switch. Remove all of this?")
	if err == nil && !yes {
		err = fmt.Errorf("nothing was changed")
	}
	return err
}
