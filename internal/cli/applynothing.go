package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/host/interrupt"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// confirmNothing asks before a file that declares nothing removes everything: such a file is more often truncated than
// intended. If nobody can be asked, --yes is required.
func confirmNothing(d Deps, c *cobra.Command, t *target, q api.Apply, yes bool) error {
	if q.DryRun || yes || !spec.DeclaresNothing([]byte(q.Content)) {
		return nil
	}
	q.DryRun = true
	out, err := ask(c, t, func(ctx context.Context, s api.Service) (*api.Applied, error) { return s.Apply(ctx, q) })
	if err != nil || len(out.Changes) == 0 {
		return err
	}
	if !d.Asking {
		return usagef("%s declares no switch, so that every switch and declared port would be removed: see what goes "+
			"with --dry-run, "+
			"and add --yes if that is meant", q.File)
	}
	if err := printChanges(d, printable.NewWriter(d.Stderr, d.mark), out); err != nil {
		return err
	}
	yes, err = d.yes(c, printable.Text(q.File)+" declares no switch. Remove all of this?")
	if err == nil && !yes {
		err = fmt.Errorf("nothing was changed")
	}
	return err
}

// confirmNoSwitch is confirmNothing for the definition of a cluster's hosts.
func confirmNoSwitch(d Deps, c *cobra.Command, t *fleetTarget, q api.Define, yes bool) error {
	if q.DryRun || yes || !spec.DefinesNothing([]byte(q.Content)) {
		return nil
	}
	q.DryRun, q.Wait = true, 0
	out, err := askFleet(c, t, timeForSize(q), func(ctx context.Context, f *api.Fleet) (*api.Defined, error) {
		return f.Define(ctx, q)
	})
	if err != nil || len(out.Changes) == 0 {
		return err
	}
	if !d.Asking {
		return usagef("%s defines no switch, so that every switch of the cluster's hosts would be removed: see what "+
			"goes with --dry-run, and add --yes if that is meant", q.File)
	}
	if err := printDefined(d, printable.NewWriter(d.Stderr, d.mark), out, true); err != nil {
		return err
	}
	yes, err = d.yes(c, printable.Text(q.File)+" defines no switch. Remove all of this?")
	if err == nil && !yes {
		err = fmt.Errorf("nothing was changed")
	}
	return err
}

// yes asks a person on the terminal; without an answer it returns false.
func (d Deps) yes(c *cobra.Command, question string) (bool, error) {
	fmt.Fprintf(d.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(interrupt.Reader(c.Context(), d.Stdin)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(d.Stderr)
	}
	if c.Context().Err() != nil {
		return false, c.Context().Err()
	}
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes", nil
}
