package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newShow(d Deps) *cobra.Command {
	t := &target{}
	c := group("show", "Explain what is active", "  heddle show effective vm1/eth0")
	t.flags(d, c)
	c.AddCommand(newShowEffective(d, t))
	return c
}

func newShowEffective(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "effective PORT", Short: "Show a port's effective policy and where each value comes from",
		Long: "Show a port's effective policy and where each value comes from. With --controller the port is found " +
			"on whichever host has it.",
		Example: "  heddle show effective vm1/eth0\n  heddle show effective vm1/eth0 -o yaml", Args: exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			f, away, err := locate(c, t, wanted[api.Port]{name: args[0], what: "port or VM", kind: "ports",
				list: "heddle port list",
				here: portsNamed, runs: ofOneGuest})
			if err != nil {
				return away.with(d, err)
			}
			return o.print(d, f.of.Effective, func(w io.Writer) error { return printEffective(w, f.of) })
		},
	}
	t = t.looking(d, c)
	o.flag(c)
	return c
}

// printEffective shows a port's effective policy.
func printEffective(w io.Writer, p api.Port) error {
	if _, err := fmt.Fprintf(w, "port %s in port group %s of switch %s\n\n", p.Name, p.PortGroup,
		p.Switch); err != nil {
		return err
	}
	return printRows(w, p.Effective)
}
