package hosts

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// JoinedHost is what "heddle host join --adopt" did.
type JoinedHost struct {
	*api.Membership
	// HandOver is what changed when the host's own switches were handed over; null where there was nothing.
	HandOver *api.Applied `json:"handOver"`
}

// adopting is the part of "heddle host join --adopt" after the host has joined.
type adopting struct {
	adopt, yes bool
	window     api.Window
}

func (a *adopting) flags(c *cobra.Command) {
	c.Flags().BoolVar(&a.adopt, "adopt", false, "then hand over the switches that this host's own file has too, as\n"+
		"\"heddle host hand-over\" does: the differences are shown first")
	c.Flags().BoolVarP(&a.yes, "yes", "y", false, "hand over without asking")
	cli.WindowFlag(c, &a.window)
}

// check refuses what could not be asked about, before the host joins.
func (a *adopting) check(d cli.Deps) error {
	if a.adopt && !a.yes && !d.Asking {
		return cli.Usagef("--adopt shows what changes and asks on a terminal: add --yes to hand over without it, " +
			"or join " +
			"without --adopt and look first (heddle host hand-over --dry-run)")
	}
	return nil
}

// Times of waiting for what the controllers define for a host that has joined.
const (
	adoptPatience = 30 * time.Second
	adoptPoll     = 100 * time.Millisecond
)

// run hands over what the host's own file has too.
func (a *adopting) run(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, m *api.Membership) error {
	plan, m, err := a.differences(c, t, m)
	if err != nil {
		return err
	}
	if plan == nil {
		return a.print(d, o, JoinedHost{Membership: m})
	}
	w := printable.NewWriter(d.Stderr, d.Mark)
	if err := cli.PrintChanges(d, w, plan); err != nil {
		return err
	}
	if !a.yes {
		yes, err := d.Yes(c, "Hand the switches over to the controllers?")
		if err != nil || !yes {
			return fmt.Errorf("this host is %s of cluster %s, and its switches stay its own: heddle host hand-over "+
				"hands them over, heddle host leave takes the host out of the cluster", m.Name, m.Cluster)
		}
	}
	out, err := cli.AskTried(d, c, t, a.window, func(ctx context.Context, s api.Service) (*api.Applied, error) {
		return s.HandOver(ctx, api.HandOver{Window: a.window})
	})
	if err != nil {
		return o.PrintReverted(d, err)
	}
	cli.PrintWarnings(d, out)
	cli.PrintTrial(d, out.Trial)
	if m, err = cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
		return s.Membership(ctx)
	}); err != nil {
		return err
	}
	return a.print(d, o, JoinedHost{m, out})
}

// differences waits for what the controllers define for the host, and gives what a hand-over would change; nil where
// they define nothing that the host's own file has.
func (a *adopting) differences(c *cobra.Command, t *cli.Target, m *api.Membership) (
	*api.Applied, *api.Membership, error) {
	for end := time.Now().Add(adoptPatience); ; {
		plan, errPlan := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Applied, error) {
			return s.HandOver(ctx, api.HandOver{DryRun: true})
		})
		if errPlan == nil {
			return plan, m, nil
		}
		m, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
			return s.Membership(ctx)
		})
		switch {
		case err != nil:
			return nil, nil, err
		case m.Epoch > 0: // it is active beside the host's own
			return nil, m, nil
		case time.Now().After(end):
			return nil, nil, fmt.Errorf("this host is %s of cluster %s, and nothing was handed over: within %s no "+
				"controller sent a definition for it (heddle host show, then heddle host hand-over): %w", m.Name,
				m.Cluster, adoptPatience, errPlan)
		}
		select {
		case <-time.After(adoptPoll):
		case <-c.Context().Done():
			return nil, nil, c.Context().Err()
		}
	}
}

func (a *adopting) print(d cli.Deps, o *cli.Output, out JoinedHost) error {
	return o.Print(d, out, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "this host is %s of cluster %s\n", out.Name, out.Cluster); err != nil {
			return err
		}
		if out.HandOver == nil {
			_, err := fmt.Fprintln(w, "its own file has no switch that the controllers define: nothing was handed over")
			return err
		}
		return cli.PrintChanges(d, w, out.HandOver)
	})
}
