package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// onNothing says what apply does with a file that declares nothing.
type onNothing struct {
	yes    bool // nobody is asked
	reload bool // the file is read as the agent reads it at its start
}

func (n *onNothing) flags(c *cobra.Command) {
	c.Flags().BoolVar(&n.yes, "yes", false, "remove every switch without asking, where the file declares none")
	c.Flags().BoolVar(&n.reload, "reload", false, "read the file as the agent does at its start: one without a list "+
		"of switches is refused where it would remove any, and \"switches: []\" counts without asking")
	c.MarkFlagsMutuallyExclusive("yes", "reload")
}

// reloads refuses a file that says nothing about switches, as a start and SIGHUP do.
func reloads(c *cobra.Command, t *cli.Target, q api.Apply) error {
	cfg, err := spec.Parse(q.File, []byte(q.Content))
	if err != nil || cfg.ListsSwitches() { // the agent says what is wrong
		return nil
	}
	var before *spec.Config
	last, err := configOf(t, c, api.ConfigQuery{})
	var answer *api.Error
	switch {
	case errors.As(err, &answer) && answer.Kind == api.NotFound: // nothing was applied yet
		before = &spec.Config{}
	case err != nil:
		return err
	default:
		if before, err = spec.Parse(last.File, []byte(last.Content)); err != nil {
			before = nil
		}
	}
	if cfg.TakesAwayUnasked(before) {
		return &cli.UsageError{Err: fmt.Errorf("%s: %w", q.File, spec.ErrSaysNothing)}
	}
	return nil
}

// confirm asks before a file that declares nothing removes everything: such a file is more often truncated than
// intended. If nobody can be asked, --yes is required.
func (n *onNothing) confirm(d cli.Deps, c *cobra.Command, t *cli.Target, q api.Apply) error {
	if n.reload {
		return reloads(c, t, q)
	}
	if q.DryRun || n.yes || !spec.DeclaresNothing([]byte(q.Content)) {
		return nil
	}
	q.DryRun = true
	out, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Applied, error) { return s.Apply(ctx, q) })
	if err != nil || len(out.Changes) == 0 {
		return err
	}
	if !d.Asking {
		return cli.Usagef("%s declares no switch, so that every switch and declared port would be removed: see "+
			"what goes "+
			"with --dry-run, "+
			"and add --yes if that is meant", q.File)
	}
	if err := cli.PrintChanges(d, printable.NewWriter(d.Stderr, d.Mark), out); err != nil {
		return err
	}
	yes, err := d.Yes(c, printable.Text(q.File)+" declares no switch. Remove all of this?")
	if err == nil && !yes {
		err = fmt.Errorf("nothing was changed")
	}
	return err
}
