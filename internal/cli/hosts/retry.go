package hosts

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// RetriedHost is what "heddle host retry" did.
type RetriedHost struct {
	Name     string `json:"name"`
	Revision int64  `json:"revision"`
}

func newHostRetry(d cli.Deps) *cobra.Command {
	t, o := &cli.FleetTarget{}, &cli.Output{}
	c := &cobra.Command{
		Use: "retry HOST", Short: "Have a host try again what it took back, at a controller",
		Long: "Have a host try again, once, the definition that cut it off from its controllers and that it took " +
			"back (state reverted). Set right in the network what was in its way first. Where it loses the " +
			"controllers again, it goes back again.",
		Example: "  heddle host retry esx1", Args: cli.Exactly("HOST"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			revision, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (int64, error) {
				return f.RetryHost(ctx, args[0])
			})
			if err != nil {
				return err
			}
			return o.Print(d, RetriedHost{args[0], revision}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "host %s tries revision %d again: see heddle host list\n", args[0], revision)
				return err
			})
		},
	}
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}
