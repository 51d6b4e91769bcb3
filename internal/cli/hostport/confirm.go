package hostport

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func NewConfirm(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	c := &cobra.Command{
		Use: "confirm", Short: "Confirm a change that otherwise goes back by itself",
		Long: "Keep a change of the way to this host's own addresses that otherwise goes back by itself: a change " +
			"made with --confirm-within, an adoption (\"heddle host-port adopt\"), or one that a controller sent. If " +
			"those who answered before the change answer again after it, no confirmation is needed.",
		Example: "  heddle apply -f heddle.yaml --confirm-within 2m\n  heddle confirm", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			v, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Trial, error) {
				return s.ConfirmChange(ctx)
			})
			if cli.IsNotFound(err) {
				return confirmAdoption(d, c, t, o, err)
			}
			if err != nil {
				return err
			}
			return o.Print(d, v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s stays\n", v.Change)
				return err
			})
		},
	}
	o.Flag(c)
	t.Flags(d, c)
	return c
}

// confirmAdoption confirms the adoption that waits for confirmation; if there is none, it returns the error none.
func confirmAdoption(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, none error) error {
	a, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
		return s.ConfirmAdoption(ctx, api.HostPortName{})
	})
	if cli.IsNotFound(err) {
		return none
	}
	if err != nil {
		return err
	}
	return o.Print(d, a, func(w io.Writer) error { return printConfirmed(w, a) })
}
