package hostport

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newHostPortRelease(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	q := api.Release{}
	c := &cobra.Command{
		Use: "release PORT", Short: "Move everything back to the device it was adopted from",
		Example: "  heddle host-port release vmk0", Args: cli.Exactly("PORT"),
		Long: "Move everything back to the device it was adopted from. Then the gateway is asked by way of the " +
			"device. If it does not answer in the time it had for the adoption, the agent moves everything to the " +
			"host port again.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q.Name = args[0]
			a, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
				return s.ReleaseAdoption(ctx, q)
			})
			if err == nil && a.State == api.AdoptionReleasing {
				a, err = awaitRelease(c, t, q.Name)
			}
			if err != nil {
				return err
			}
			return o.Print(d, a, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "device %s has its addresses and routes again\n", a.Device)
				return err
			})
		},
	}
	c.Flags().BoolVar(&q.Force, "force", false, "leave everything at the device, even if the gateway does not answer")
	o.Flag(c)
	return c
}

// awaitRelease waits until the gateway has answered by the device, or the host port has everything again. The agent
// goes on also when nobody waits.
func awaitRelease(c *cobra.Command, t *cli.Target, name string) (*api.Adoption, error) {
	client, err := t.Client()
	if err != nil {
		return nil, err
	}
	ctx := c.Context()
	poll := time.NewTicker(gatewayPoll)
	defer poll.Stop()
	for {
		a, err := client.Adoption(ctx, api.HostPortName{Name: name})
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w; the release goes on without this command: see \"heddle events\"", err)
		case a.State == api.AdoptionReverted:
			return a, nil
		case a.State == api.AdoptionConfirmed:
			return nil, fmt.Errorf("host port %s has the addresses of %s again: %s. Fix the way by %s, or use --force",
				a.Name, a.Device, a.Reason, a.Device)
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("gave up waiting for the gateway; the release goes on without this command: see " +
				"\"heddle events\"")
		}
	}
}
