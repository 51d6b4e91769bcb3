package port

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newPortActivate(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "activate PORT", Short: "Activate a waiting port: its guest runs on this host now",
		Long: "Activate a waiting port: its guest runs on this host now. A port that is connected for a guest that " +
			"arrives by migration waits for the guest's first frame or for QEMU's event; until then it sends and " +
			"receives nothing. This command is for managers that know earlier, and for guests that send nothing. " +
			"For a port that does not wait it does nothing.",
		Example: "  heddle port activate vm7/eth0", Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if _, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (struct{}, error) {
				return struct{}{}, s.Activate(ctx, api.Activate{Port: args[0]})
			}); err != nil {
				return err
			}
			p, err := portOf(t, c, args[0])
			if err != nil {
				return err
			}
			return o.Print(d, p, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "port %s waits for no migration: %s\n", p.Name, portLine(p))
				return err
			})
		},
	}
	o.Flag(c)
	return c
}
