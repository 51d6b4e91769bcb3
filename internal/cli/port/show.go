package port

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/network"
)

func NewShow(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("show", "Explain what is active", "  heddle show effective vm1/eth0")
	t.Flags(d, c)
	c.AddCommand(newShowEffective(d, t))
	return c
}

func newShowEffective(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "effective PORT", Short: "Show a port's effective policy and where each value comes from",
		Long: "Show a port's effective policy and where each value comes from. With --controller the port is found " +
			"on whichever host has it.",
		Example: "  heddle show effective vm1/eth0\n  heddle show effective vm1/eth0 -o yaml",
		Args:    cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			f, away, err := cli.Locate(c, t, cli.Wanted[api.Port]{Name: args[0], What: "port or VM", Kind: "ports",
				List: "heddle port list",
				Here: cli.PortsNamed, Runs: OfOneGuest})
			if err != nil {
				return away.With(d, err)
			}
			return o.Print(d, f.Of.Effective, func(w io.Writer) error { return printEffective(w, f.Of) })
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}

// printEffective shows a port's effective policy.
func printEffective(w io.Writer, p api.Port) error {
	if _, err := fmt.Fprintf(w, "port %s in port group %s of switch %s\n\n", p.Name, p.PortGroup,
		p.Switch); err != nil {
		return err
	}
	return network.PrintRows(w, p.Effective)
}
